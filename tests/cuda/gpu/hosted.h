// The CUDA rows as kernels on host memory: each call copies its operands to the GPU, runs there, and copies
// them back, guards and all, so that the conformance harness works on a real GPU as it does anywhere else.
#pragma once
#include "runtime/base/kernel.h"

namespace cairn::conformance {

const kernels::Registry& hosted_cuda_registry();

}  // namespace cairn::conformance
