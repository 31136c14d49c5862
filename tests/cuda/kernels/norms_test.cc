// Norms and softmax over rows of all lengths: warps, blocks, several vectors per thread, and rows that do not
// go by vectors.
#include "tests/cuda/kernels/direct.h"
#include "tests/cuda/kernels/rows_check.h"

namespace cairn::conformance {
namespace {

constexpr int64_t kColumns[] = {8, 256, 520, 776, 1024, 1032, 1999, 2056, 4104, 8200, 16384, 33000};

TEST(CudaNorms, AllLengths) {
  for (const DType t : kTypes)
    for (const int64_t c : kColumns) {
      const int64_t rows = c < 1000 ? 9 : 3;
      const Argument x = floats(t, {rows, c}), gamma = floats(DType::kF32, {c}, 0.5, 1.5),
                     beta = floats(DType::kF32, {c});
      check_rows({"layernorm", {x, gamma, beta}, {like(x), f32({rows}), f32({rows})}});
      check_rows({"rmsnorm", {x, gamma}, {like(x), f32({rows})}, {{"eps", 1e-3}}});
    }
}

TEST(CudaNorms, WithoutWhatMayBeLeftOut) {
  for (const DType t : kTypes)
    for (const int64_t c : {768, 33}) {
      const Argument x = floats(t, {5, c}), beta = floats(DType::kF32, {c});
      check_rows({"layernorm", {x, kLeftOut, beta}, {like(x), f32({5}), f32({5})}, {}, 1});
      check_rows({"rmsnorm", {x, kLeftOut}, {like(x), f32({5})}, {}, 1});
    }
}

TEST(CudaNorms, GradientsOfAllLengths) {
  for (const DType t : kTypes)
    for (const int64_t c : {8, 776, 1999, 2056, 4104, 8192}) {
      const int64_t rows = c < 1000 ? 20 : 5;
      const Argument x = floats(t, {rows, c}), gamma = floats(DType::kF32, {c}, 0.5, 1.5),
                     mean = floats(DType::kF32, {rows}), rstd = floats(DType::kF32, {rows}, 1, 2);
      check_rows({"layernorm_grad", {x, x, gamma, mean, rstd}, {like(x), f32({c}), f32({c})}});
      check_rows({"rmsnorm_grad", {x, x, gamma, rstd}, {like(x), f32({c})}});
      check_rows({"layernorm_grad", {x, x, gamma, mean, rstd, x}, {like(x), f32({c}), f32({c})}});
      check_rows({"rmsnorm_grad", {x, x, gamma, rstd, x}, {like(x), f32({c})}});
    }
}

// So many that every block goes around more often than there are rows on their way.
TEST(CudaNorms, GradientsOfManyRows) {
  constexpr std::pair<int64_t, int64_t> kShapes[] = {{264, 181}, {2056, 47}, {4104, 23}};
  for (const auto& [c, rows] : kShapes) {
    const Argument x = floats(DType::kBF16, {rows, c}), wide = floats(DType::kF32, {rows, c}),
                   gamma = floats(DType::kF32, {c}, 0.5, 1.5), mean = floats(DType::kF32, {rows}),
                   rstd = floats(DType::kF32, {rows}, 1, 2);
    check_rows({"layernorm_grad", {x, x, gamma, mean, rstd, x}, {like(x), f32({c}), f32({c})}});
    check_rows({"rmsnorm_grad", {wide, wide, gamma, rstd}, {like(wide), f32({c})}});
  }
}

// dx may lie on what is added to it: many rows per block, every number of vectors per thread, odd lengths.
TEST(CudaNorms, GradientsOverWhatTheyAdd) {
  for (const DType t : kTypes)
    for (const int64_t c : {8, 768, 1999, 2056, 4104, 8192})
      for (const bool centered : {true, false}) {
        const int64_t rows = c == 8 ? 3000 : 70;
        const TensorDesc x = desc(t, {rows, c}), row = f32({rows}), column = f32({c});
        Direct d{"layernorm_grad", {x, x, column, row, row, x}, {x, column, column}, {}};
        if (!centered) d = {"rmsnorm_grad", {x, x, column, row, x}, {x, column}, {}};
        const size_t over = d.in.size() - 1;
        const Ran apart(d, [](Ran&, kernels::Call&) {});
        const Ran lying(d, [&](Ran& ran, kernels::Call& call) {
          ran.out[0].data = ran.in[over].data;
          call.in_place = 1u << over;
        });
        for (size_t o = 0; o < d.out.size(); ++o) EXPECT_EQ(lying.bytes(o), apart.bytes(o)) << name_of(d);
      }
}

TEST(CudaNorms, PartsOfGradients) {
  for (const DType t : kTypes)
    for (const int64_t c : {64, 33}) {
      const Argument x = floats(t, {20, c}), stat = floats(DType::kF32, {20}, 0.5, 1);
      for (const uint32_t present : {1u, 2u, 4u, 5u})
        check_rows(
            {"layernorm_grad", {x, x, kLeftOut, stat, stat}, {like(x), f32({c}), f32({c})}, {}, present});
      for (const uint32_t present : {1u, 2u})
        check_rows({"rmsnorm_grad", {x, x, kLeftOut, stat}, {like(x), f32({c})}, {}, present});
    }
}

TEST(CudaSoftmax, AllLengths) {
  for (const DType t : kTypes)
    for (const int64_t c : kColumns) {
      const int64_t rows = c < 1000 ? 9 : 3;
      const Argument x = floats(t, {rows, c}, -6, 6);
      check_rows({"softmax", {x}, {like(x)}});
      check_rows({"softmax_grad", {x, floats(t, {rows, c}, 0, 0.1)}, {like(x)}});
    }
}

TEST(CudaSoftmax, MaskedElements) {
  for (const DType t : kTypes)
    for (const int64_t c : {40, 33}) {
      RowCase masked{"softmax", {floats(t, {4, c}, -6, 6)}, {like(floats(t, {4, c}))}};
      masked.edit = [&](std::span<const Tensor> in) {
        for (int64_t i = c / 2; i < c; ++i) set(in[0], i, -HUGE_VAL);
        set(in[0], 2 * c + 1, std::nan(""));
        for (int64_t i = 0; i < c; ++i) set(in[0], 3 * c + i, -HUGE_VAL);
      };
      check_rows(masked);
    }
}

}  // namespace
}  // namespace cairn::conformance
