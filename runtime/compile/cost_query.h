// What the cost model is asked about: ops of a joint graph by signature, and what a step does around its
// plan.
#pragma once
#include "runtime/compile/kernel_maker.h"
#include "runtime/costs/model.h"
#include "runtime/graph/joint.h"

namespace cairn::engine {

// Signature: op, operands as its kernel sees them ("-": left out), attributes that its time may depend on.
costs::Query query_of(const graph::JointGraph& joint, const graph::JointOp& op);
// The same with operands that are no values of the joint graph.
costs::Query query_of(const graph::JointGraph& joint, const graph::JointOp& op, const Operands& operands);
// Norm of the gradients and update of all parameters, once per step.
costs::Query optimizer_query(const graph::JointGraph& joint);
// The host's share of a micro-batch: inputs written, work submitted, loss read.
costs::Query host_query(const graph::JointGraph& joint);

}  // namespace cairn::engine
