// The kernel of an op that the host program defines. The thread of the compute queue calls its callbacks.
#pragma once
#include <memory>

#include "runtime/base/kernel.h"
#include "runtime/graph/joint.h"

namespace cairn::engine {

// For the ops `custom` and `custom_grad`. A callback that returns false or throws fails the run with kInternal, which
// names it.
std::unique_ptr<kernels::Kernel> make_custom_kernel(std::shared_ptr<const graph::Graph> graph,
                                                    ops::OpCode code, const kernels::Signature& signature);

}  // namespace cairn::engine
