// Updates on a real GPU: of many tensors in one launch the bits of a kernel each, of squares in pieces those of the whole, and those of the processor beside it.
#include "tests/conformance/squares.h"
#include "tests/cuda/gpu/hosted.h"
#include "tests/cuda/kernels/processor_check.h"

namespace cairn::conformance {
namespace {

TEST(CudaOptimizerBatch, HasTheBitsOfAKernelEachOnTheGpu) { check_batches(hosted_cuda_registry()); }
TEST(CudaOptimizer, HasTheBitsOfTheProcessorOnTheGpu) {
  expect_bits_of_the_processor(hosted_cuda_registry());
  expect_squares_of_the_processor(hosted_cuda_registry());
}
TEST(CudaOptimizer, SumsOfSquaresInPiecesHaveTheBitsOfTheWholeOnTheGpu) {
  check_squares_in_chunks(hosted_cuda_registry());
}

}  // namespace
}  // namespace cairn::conformance
