#include "runtime/device/cuda/status.h"

namespace cairn::device::cuda {

Error error_of(cudaError_t status, std::string_view what) {
  return Error(kernels::cuda::code_of(status),
               cat(what, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ')',
                   kernels::cuda::advice_of(status)));
}

}  // namespace cairn::device::cuda
