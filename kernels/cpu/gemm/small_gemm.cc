#include "kernels/cpu/gemm/small_gemm.h"

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/small_gemm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// The sums of a block of kRows x kVectors vectors are kept in registers over all of k.
template <int kRows, int kVectors, class Tag>
HWY_INLINE void block(const SmallGemm& g, int64_t i, int64_t j, Tag tag) {
  const int64_t w = lanes();
  CAIRN_VECTORS(sum, [kRows][kVectors]);
  float* c = g.c + i * g.ldc + j;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[r][v] = g.add ? get(tag, c + r * g.ldc + v * w) : hn::Zero(DF());
  const float* left_of[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) left_of[r] = g.a + (i + r) * g.a_row;
  const float* b = g.b + j;
  for (int64_t k = 0; k < g.k; ++k) {
    CAIRN_VECTORS(right, [kVectors]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) right[v] = get(tag, b + v * w);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const V left = set(left_of[r][k * g.a_step]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
    }
    b += g.ldb;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) put(tag, sum[r][v], c + r * g.ldc + v * w);
}

// Sums of few rows wait for each other: what is left over goes in blocks as high as they can be.
template <int kVectors, class Tag>
HWY_INLINE void rows(const SmallGemm& g, int64_t j, Tag tag) {
  constexpr int kRows = kRegisters >= 32 ? 8 : 6;
  int64_t i = 0;
  for (; i + kRows <= g.m; i += kRows) block<kRows, kVectors>(g, i, j, tag);
  if (i + 4 <= g.m) block<4, kVectors>(g, i, j, tag), i += 4;
  if (i + 2 <= g.m) block<2, kVectors>(g, i, j, tag), i += 2;
  if (i < g.m) block<1, kVectors>(g, i, j, tag);
}

void small_gemm_dispatch(const SmallGemm& g) {
  const int64_t w = lanes();
  int64_t j = 0;
  for (; j + 2 * w <= g.n; j += 2 * w) rows<2>(g, j, Full());
  for (; j + w <= g.n; j += w) rows<1>(g, j, Full());
  if (j < g.n) rows<1>(g, j, Part{static_cast<size_t>(g.n - j)});
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(small_gemm_dispatch);
void small_gemm(const SmallGemm& g) { CAIRN_DISPATCH(small_gemm_dispatch)(g); }
}  // namespace cairn::kernels::cpu
#endif
