// A host's own op as a kernel: its callbacks run on the compute lane's thread.
#pragma once
#include <memory>

#include "runtime/base/kernel.h"
#include "runtime/graph/joint.h"

namespace cairn::engine {

// For ops `custom` and `custom_grad`. A callback that returns false, or throws, fails the run: kInternal,
// naming it.
std::unique_ptr<kernels::Kernel> make_custom_kernel(std::shared_ptr<const graph::Graph> graph,
                                                    ops::OpCode code, const kernels::Signature& signature);

}  // namespace cairn::engine
