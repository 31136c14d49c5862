// Updates and sums of squares over several blocks; gradient scales.
#include <limits>

#include "kernels/registry.h"
#include "tests/conformance/squares.h"
#include "tests/cuda/kernels/direct.h"
#include "tests/cuda/kernels/processor_check.h"

namespace cairn::conformance {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = HUGE_VAL;
const TensorDesc kScalar = desc(DType::kF64, {});

TEST(CudaOptimizer, SumsOfSquaresInChunks) {
  for (const DType t : {DType::kF32, DType::kBF16})
    for (const int64_t n : {8191, 8192, 8197, 100003}) agree({"sum_squares", {desc(t, {n})}, {kScalar}, {}});
}

TEST(CudaOptimizer, SumsOfSquaresInPiecesHaveTheBitsOfTheWhole) {
  check_squares_in_chunks(kernels::cuda_registry());
}

TEST(CudaOptimizer, SumOfSquaresIsFiniteExactlyIfAllElementsAre) {
  const Direct d{"sum_squares", {desc(DType::kF32, {20001})}, {kScalar}, {}};
  for (const double value : {1e30, kInfinity, kNan})
    for (const int64_t at : {0, 9000, 20000}) {
      const Ran ran(d, [&](Ran& r, kernels::Call&) { set(r.in[0], at, value); });
      EXPECT_EQ(std::isfinite(get(ran.out[0], 0)), std::isfinite(value)) << value << " at " << at;
      if (std::isfinite(value)) EXPECT_NEAR(get(ran.out[0], 0) / 1e60, 1, 1e-6);
    }
}

TEST(CudaOptimizer, UpdatesSeveralBlocksWithARest) {
  for (const UpdateKind& kind : elementwise_kinds())
    for (const int64_t n : {1023, 1024, 1027, 50002})
      for (const bool scaled : {false, true}) agree(update_call(kind, desc(DType::kF32, {n}), scaled));
}

TEST(CudaOptimizer, UpdatesOfWholeTensors) {
  for (const UpdateKind& kind : update_kinds())
    for (const TensorDesc& x : update_tensors(kind))
      for (const bool scaled : {false, true}) agree(update_call(kind, x, scaled));
}

TEST(CudaOptimizer, HasTheBitsOfTheProcessor) {
  expect_bits_of_the_processor(kernels::cuda_registry());
  expect_squares_of_the_processor(kernels::cuda_registry());
}
TEST(CudaOptimizer, GradScales) { check_grad_scales(kernels::cuda_registry()); }
TEST(CudaOptimizer, UpdatesRoundByTheBitsOfTheElement) { check_rounding(kernels::cuda_registry()); }
TEST(CudaOptimizer, HalvesOfAParameterAreWhatIsMadeOfAWholeOne) { check_splitting(kernels::cuda_registry()); }
TEST(CudaOptimizer, UpdatesWritePackedWeights) { EXPECT_GT(check_packing(kernels::cuda_registry()), 0); }
TEST(CudaOptimizer, UpdatesThatNoKernelTakes) { check_refusals(kernels::cuda_registry()); }

TEST(CudaOptimizer, GradScaleIsOneOverTheWeight) {
  struct Case {
    double loss, weight, grad_scale;
  };
  for (const Case& c : {Case{3, 4, 0.25}, Case{3, 0, kNan}, Case{kNan, 4, kNan}, Case{3, kInfinity, kNan}}) {
    const Ran ran({"grad_scale", {kScalar, kScalar}, {kScalar}, {}}, [&](Ran& r, kernels::Call&) {
      set(r.in[0], 0, c.loss);
      set(r.in[1], 0, c.weight);
    });
    const double grad_scale = get(ran.out[0], 0);
    EXPECT_TRUE(grad_scale == c.grad_scale || (std::isnan(grad_scale) && std::isnan(c.grad_scale)))
        << grad_scale << " for weight " << c.weight;
  }
  const Ran alone({"grad_scale", {kScalar, kScalar}, {kScalar}, {}},
                  [&](Ran& r, kernels::Call&) { r.in[1].data = nullptr; });
  EXPECT_EQ(get(alone.out[0], 0), 1.0);
}

}  // namespace
}  // namespace cairn::conformance
