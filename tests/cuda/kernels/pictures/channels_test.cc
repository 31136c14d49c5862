// Pools and norms by channel where the conformance cases do not reach: places that overlap, several tiles of channels, several parts of
// the rows.
#include "tests/cuda/kernels/direct.h"
#include "tests/cuda/kernels/rows_check.h"

namespace cairn::conformance {
namespace {

TEST(CudaPools, PlacesOfOverlappingWindows) {
  for (const DType t : kTypes) {
    RowCase c{"max_pool_grad",
              {floats(t, {2, 7, 6, 5}), integers({2, 7, 6, 5}, 0, 1)},
              {desc(t, {2, 7, 6, 5})},
              with("input", List{7, 6})};
    c.edit = [](std::span<const Tensor> in) {  // one to the left and above, as far as there is one
      for (int64_t i = 0; i < in[1].desc.shape.elements(); ++i) {
        const int64_t pixel = i / 5 % 42, h = pixel / 6, w = pixel % 6, by = i % 2;
        in[1].as<int32_t>()[i] =
            static_cast<int32_t>(std::max<int64_t>(h - by, 0) * 6 + std::max<int64_t>(w - by, 0));
      }
    };
    check_rows(c);
  }
}

TEST(CudaPools, NanAndTheFirstOfEqualOnes) {
  for (const DType t : kTypes) {
    RowCase c{"max_pool",
              {exact(t, {1, 6, 6, 9})},
              {desc(t, {1, 2, 2, 9}), desc(DType::kI32, {1, 2, 2, 9})},
              with("kernel", List{3})};
    c.edit = [](std::span<const Tensor> in) {
      for (const int64_t i : {40, 49, 200, 300}) set(in[0], i, std::nan(""));
      for (int64_t i = 0; i < 3; ++i) set(in[0], 9 * i, -HUGE_VAL);
    };
    check_rows(c);
  }
}

// Several tiles of channels, several parts of the rows; channels that do not go by vectors.
TEST(CudaChannels, StatisticsAndGradients) {
  for (const DType t : kTypes)
    for (const int64_t c : {3, 64, 136, 264}) {
      const Argument x = floats(t, {3, 15, 10, c}, 1, 3), gamma = floats(DType::kF32, {c}, 0.5, 1.5),
                     mean = floats(DType::kF32, {c}, 1, 3), var = floats(DType::kF32, {c}, 0.5, 2);
      const TensorDesc channels = f32({c});
      check_rows({"batchnorm", {x, gamma, mean}, {like(x), channels, channels}});
      check_rows({"normalize", {x, mean, var, gamma, mean}, {like(x)}});
      for (const int64_t fixed : {0, 1})
        check_rows({"batchnorm_grad",
                    {x, x, gamma, mean, var},
                    {like(x), channels, channels},
                    with("fixed", fixed)});
    }
}

TEST(CudaChannels, PartsOfGradients) {
  const Argument x = floats(DType::kF32, {30, 6}), each = floats(DType::kF32, {6}, 0.5, 1.5);
  for (const int64_t fixed : {0, 1})
    for (const uint32_t present : {1u, 2u, 4u, 6u})
      check_rows({"batchnorm_grad",
                  {x, x, kLeftOut, each, each},
                  {like(x), f32({6}), f32({6})},
                  with("fixed", fixed),
                  present});
}

}  // namespace
}  // namespace cairn::conformance
