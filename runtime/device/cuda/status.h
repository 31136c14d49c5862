// CUDA's statuses as cairn's errors.
#pragma once
#include <cuda_runtime_api.h>

#include "runtime/base/error.h"

namespace cairn::device::cuda {

// After these nothing on the device can be used any more, by anybody in this process.
bool is_lost(cudaError_t);
// kDeviceLost, kOutOfMemory, kUnsupported (no driver, no device, too old) or kInternal; names status and
// call.
Error error_of(cudaError_t, std::string_view what);
inline void check(cudaError_t status, std::string_view what) {
  if (status != cudaSuccess) [[unlikely]]
    throw error_of(status, what);
}

}  // namespace cairn::device::cuda
