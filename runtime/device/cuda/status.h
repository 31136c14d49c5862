// CUDA's statuses as cairn's errors.
#pragma once
#include "runtime/base/cuda/status.h"

namespace cairn::device::cuda {

using kernels::cuda::is_lost;
// kDeviceLost, kOutOfMemory, kUnsupported (no driver, no device, too old) or kInternal; names status and
// call.
Error error_of(cudaError_t, std::string_view what);
inline void check(cudaError_t status, std::string_view what) {
  if (status != cudaSuccess) [[unlikely]]
    throw error_of(status, what);
}

}  // namespace cairn::device::cuda
