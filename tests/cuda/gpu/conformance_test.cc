// The kernels of the CUDA backend on a real GPU, against the reference.
#include "tests/conformance/backend.h"
#include "tests/cuda/gpu/hosted.h"
#include "tests/cuda/kernels/known.h"

namespace cairn::conformance {
namespace {

TEST(CudaKernels, AgreeWithTheReferenceOnTheGpu) {
  const Known known{kCudaUnsupported, kCudaFailures, {"cudnn"}};
  check_backend(hosted_cuda_registry(), &known);
}

}  // namespace
}  // namespace cairn::conformance
