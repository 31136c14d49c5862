// The kernels of the CUDA backend on a real GPU, against the reference.
#include "tests/conformance/backend.h"
#include "tests/cuda/gpu/hosted.h"

namespace cairn::conformance {
namespace {

TEST(CudaKernels, AgreeWithTheReferenceOnTheGpu) { check_backend(hosted_cuda_registry(), {"cudnn"}); }

}  // namespace
}  // namespace cairn::conformance
