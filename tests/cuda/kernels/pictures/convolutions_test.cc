// Convolutions where the conformance cases do not reach: several tiles and parts of each kind, phases of transposed convolutions, and
// threads in several orders.
#include "tests/cuda/emulated/runtime.h"
#include "tests/cuda/kernels/direct.h"
#include "tests/cuda/kernels/rows_check.h"

namespace cairn::conformance {
namespace {

using Sizes = std::initializer_list<int64_t>;

struct Convolution {
  DType type, weight;
  Sizes x, w, y;
  Attrs attrs = {};
};

// The convolution, its input's gradient and its weight's, in another order of threads each time.
void check_conv(const Convolution& c) {
  static uint64_t seed = 0;
  kernels::cuda::emulated::seed(1 + seed++ % 3);
  const Argument x = floats(c.type, c.x), w = floats(c.weight, c.w), y = floats(c.type, c.y),
                 b = floats(DType::kF32, {*c.w.begin()});
  const List of_x(c.x.begin() + 1, c.x.end() - 1), of_w(c.w.begin() + 1, c.w.end() - 1);
  Attrs sized = c.attrs, kernel = c.attrs;
  sized.set("size", of_x);
  kernel.set("kernel", of_w);
  check_rows({"conv", {x, w, b}, {like(y)}, c.attrs});
  check_rows({"conv_transpose", {y, w}, {like(x)}, sized});
  check_rows({"conv_grad_weight", {x, y}, {{DType::kF32, w.desc.shape, 0}, like(b)}, kernel});
  kernels::cuda::emulated::seed(1);
}

// Neither rows, columns nor parts of the sums are full in the last of several tiles.
TEST(CudaConvolutions, SeveralTiles) {
  check_conv({DType::kBF16, DType::kF32, {2, 9, 10, 72}, {136, 1, 2, 72}, {2, 9, 9, 136}});
  check_conv(
      {DType::kF16, DType::kF16, {2, 9, 10, 136}, {72, 2, 1, 136}, {2, 10, 12, 72}, {{"padding", List{1}}}});
  check_conv({DType::kF32, DType::kF32, {2, 9, 10, 70}, {67, 1, 2, 70}, {2, 9, 9, 67}});
}

// Pixels are cut into parts, which are added up.
TEST(CudaConvolutions, SeveralParts) {
  for (const DType t : kTypes)
    for (const int64_t channels : {8, 5})
      check_conv({t,
                  DType::kF32,
                  {3, 16, 14, channels},
                  {16, 1, 3, channels},
                  {3, 16, 14, 16},
                  {{"padding", List{0, 1}}}});
  check_conv({DType::kBF16,
              DType::kF32,
              {3, 16, 14, 8},
              {8, 3, 3, 1},
              {3, 16, 14, 8},
              {{"padding", List{1}}, {"groups", int64_t{8}}}});
}

// Phases with more taps and with fewer, with none, with other numbers of pixels; taps that skip phases.
TEST(CudaConvolutions, Phases) {
  for (const DType t : kTypes)
    for (const int64_t groups : {1, 2, 16}) {
      const int64_t each = 16 / groups;
      const Attrs grouped = with("groups", groups);
      const auto check = [&](Sizes x, int64_t kernel, Sizes y, Attrs attrs) {
        attrs.set("groups", groups);
        check_conv({t, DType::kF32, x, {16, kernel, kernel, each}, y, attrs});
      };
      check({2, 9, 10, 16}, 3, {2, 5, 5, 16}, {{"stride", List{2}}, {"padding", List{1}}});
      check({1, 9, 11, 16}, 2, {1, 3, 3, 16}, {{"stride", List{3, 4}}});
      check({1, 11, 10, 16}, 3, {1, 4, 3, 16}, {{"stride", List{2, 3}}, {"dilation", List{2}}});
      check({1, 12, 13, 16}, 3, {1, 2, 2, 16}, {{"stride", List{6}}, {"dilation", List{3, 4}}});
      check({1, 7, 8, 16}, 3, {1, 5, 6, 16}, {{"padding", List{2, 0, 0, 2}}, {"dilation", List{2, 2}}});
    }
}

}  // namespace
}  // namespace cairn::conformance
