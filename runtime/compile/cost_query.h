// What the cost model is asked about: an op of a joint graph, by its signature, and the work around a micro-batch.
#pragma once
#include "runtime/compile/kernel_maker.h"
#include "runtime/costs/model.h"
#include "runtime/graph/joint.h"

namespace cairn::engine {

// The signature is the op, its operands as the kernel sees them ("-": left out), and the attributes that its time may
// depend on.
costs::Query query_of(const graph::JointGraph& joint, const graph::JointOp& op);
// The same with other operands than the op's own.
costs::Query query_of(const graph::JointGraph& joint, const graph::JointOp& op, const Operands& operands);
// The norm of the gradients and the update of all parameters, once per step.
costs::Query optimizer_query(const graph::JointGraph& joint);
// The host's share of a micro-batch: inputs written, work submitted, loss read.
costs::Query host_query(const graph::JointGraph& joint);

}  // namespace cairn::engine
