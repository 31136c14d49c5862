// Where a call of this backend goes: what Call::lane points at.
#pragma once
#include <cuda_runtime_api.h>

#include "runtime/base/kernel.h"

namespace cairn::kernels::cuda {

// Without one (tests): the default stream, and the call's own key.
struct StreamContext {
  cudaStream_t stream = nullptr;
  // On the device: seed, step and micro-batch of the run, which a captured graph reads at every replay; `op`
  // stands in the call. nullptr: all of the key stands in the call.
  const RandomKey* key = nullptr;
};

}  // namespace cairn::kernels::cuda
