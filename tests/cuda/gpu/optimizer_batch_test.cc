// Many tensors in one launch on a real GPU: the bits of a kernel each.
#include "tests/cuda/gpu/hosted.h"
#include "tests/cuda/kernels/batch_check.h"

namespace cairn::conformance {
namespace {

TEST(CudaOptimizerBatch, HasTheBitsOfAKernelEachOnTheGpu) { check_batches(hosted_cuda_registry()); }

}  // namespace
}  // namespace cairn::conformance
