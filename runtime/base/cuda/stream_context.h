// Where a call of this backend goes: what Call::lane points at.
#pragma once
#include <cuda_runtime_api.h>

#include "runtime/base/kernel.h"

namespace cairn::kernels::cuda {

// A call without one, as in tests, uses the default stream and its own key.
struct StreamContext {
  cudaStream_t stream = nullptr;
  // On the device: seed, step and micro-batch of the run, which a captured graph reads at every replay; `op`
  // is in the call's key. nullptr: the call's key has all of these.
  const RandomKey* key = nullptr;
};

}  // namespace cairn::kernels::cuda
