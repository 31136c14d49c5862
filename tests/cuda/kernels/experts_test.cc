// Mixtures of experts where the conformance cases do not reach: many tiles of each kind, rows that end within a tile,
// many segments of choices, and threads in several orders.
#include "kernels/registry.h"
#include "tests/cuda/emulated/runtime.h"
#include "tests/cuda/kernels/direct.h"
#include "tests/cuda/kernels/rows_check.h"

namespace cairn::conformance {
namespace {

constexpr uint64_t kSeeds = 3;

// Where each expert's rows begin: the first has none, the second more than a tile, the third one.
const std::vector<int32_t> kStarts{0, 0, 129, 130, 140};
constexpr int64_t kRows = 140, kExperts = 4;

RowCase with_starts(RowCase c) {
  c.edit = [](std::span<const Tensor> in) { std::ranges::copy(kStarts, in[2].as<int32_t>()); };
  return c;
}

// Several tiles of columns, several parts of the sums in turn, and of both the last not full.
TEST(CudaExperts, Products) {
  struct Size {
    DType type, of_weights;
    int64_t n, k;
  };
  const Argument starts = integers({kExperts + 1}, 0, 1);
  uint64_t seed = 0;
  for (const auto& [t, of_w, n, k] : {Size{DType::kBF16, DType::kF32, 136, 144},
                                      {DType::kBF16, DType::kBF16, 136, 144},
                                      {DType::kF32, DType::kF32, 67, 70}})
    for (const int64_t transposed : {0, 1}) {
      kernels::cuda::emulated::seed(1 + seed++ % kSeeds);
      const Argument x = floats(t, {kRows, k}), dy = floats(t, {kRows, n}),
                     b = floats(DType::kF32, {kExperts, n}),
                     w = transposed ? floats(of_w, {kExperts, k, n}) : floats(of_w, {kExperts, n, k});
      const TensorDesc dw{DType::kF32, w.desc.shape, 0};
      const Attrs attrs{{"transposed", transposed}};
      check_rows(with_starts({"grouped_linear", {x, w, starts, b}, {like(dy)}, attrs}));
      check_rows(with_starts({"grouped_linear_grad_input", {dy, w, starts}, {like(x)}, attrs}));
      check_rows(with_starts({"grouped_linear_grad_weight", {x, dy, starts}, {dw, like(b)}, attrs}));
    }
  kernels::cuda::emulated::seed(1);
}

// Whatever `starts` says, nothing outside of the output is written.
TEST(CudaExperts, StartsOfNoOrderTouchNothingOutside) {
  const auto of = [](DType t, std::initializer_list<int64_t> shape) {
    return TensorDesc{t, Shape(shape), 0};
  };
  const std::vector<std::vector<int32_t>> all{
      {300, 0, 100, 7, 272}, {-5, 1000000, -900, 2, 1}, {9, 9, 9, 9, 9}};
  for (const int64_t n : {64, 33})
    for (const std::vector<int32_t>& starts : all) {
      const TensorDesc x = of(DType::kBF16, {kRows, 64}), dy = of(DType::kBF16, {kRows, n}),
                       w = of(DType::kF32, {kExperts, n, 64}), b = of(DType::kF32, {kExperts, n}),
                       ends = of(DType::kI32, {kExperts + 1});
      for (const Direct& d : {Direct{"grouped_linear", {x, w, ends, b}, {dy}, {}},
                              Direct{"grouped_linear_grad_input", {dy, w, ends}, {x}, {}},
                              Direct{"grouped_linear_grad_weight", {x, dy, ends}, {w, b}, {}}}) {
        const Ran ran(
            d, [&](Drawn& drawn, kernels::Call&) { std::ranges::copy(starts, drawn.in[2].as<int32_t>()); });
        for (const Buffer& out : ran.out_buffers) EXPECT_TRUE(out.guard_intact()) << d.op;
      }
    }
}

TEST(CudaExperts, SortsManyChoices) {
  constexpr int64_t kTokens = 10000, kEach = 4, kMany = 40;  // segments of several warps' worth
  check_rows({"group_rows",
              {integers({kTokens, kEach}, 0, kMany)},
              {{DType::kI32, Shape{kTokens * kEach}, 0},
               {DType::kI32, Shape{kTokens, kEach}, 0},
               {DType::kI32, Shape{kMany + 1}, 0}},
              {{"experts", kMany}}});
}

// NaN is the largest, of equal logits the first is chosen, and -infinity can be chosen as well.
TEST(CudaExperts, ChoosesAmongLogitsThatAreNoNumbers) {
  for (const DType t : kTypes)
    for (const int64_t k : {1, 3, 40}) {
      RowCase c{"route", {floats(t, {4, 40})}, {f32({4, k}), {DType::kI32, Shape{4, k}, 0}}, {{"k", k}}};
      c.edit = [](std::span<const Tensor> in) {
        for (int64_t e = 0; e < 40; ++e) {
          set(in[0], e, e % 7 == 3 ? std::nan("") : 0);
          set(in[0], 40 + e, e == 39 ? 0.0 : -0.0);
          set(in[0], 80 + e, e == 20 ? 1 : -HUGE_VAL);
          set(in[0], 120 + e, e % 2 == 0 ? HUGE_VAL : 5);
        }
      };
      check_rows(c);
    }
}

}  // namespace
}  // namespace cairn::conformance
