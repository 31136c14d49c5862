// float32 products of few rows with a transposed B, as dot products. Included inside foreach_target files
// (per-target include guard).
#if defined(CAIRN_KERNELS_CPU_GEMM_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_GEMM_DOTS_INL_H_
#undef CAIRN_KERNELS_CPU_GEMM_DOTS_INL_H_
#else
#define CAIRN_KERNELS_CPU_GEMM_DOTS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// Rows [i, i + kHeight) of A times the rows [j, j + columns) of a transposed B, at most four: vectors run
// along k, which lies side by side in both.
template <int kHeight>
HWY_INLINE void dots_of(const GemmBlock& g, int64_t i, int64_t j, int64_t columns) {
  const float *a[kHeight], *b[4];
#pragma GCC unroll 4
  for (int r = 0; r < kHeight; ++r) a[r] = g.a + (i + r) * g.a_row;
#pragma GCC unroll 4
  for (int x = 0; x < 4; ++x) b[x] = g.b + (j + std::min<int64_t>(x, columns - 1)) * g.b_column;
  CAIRN_SUMS(sum, [kHeight][4]);
#pragma GCC unroll 4
  for (int r = 0; r < kHeight; ++r)
#pragma GCC unroll 4
    for (int x = 0; x < 4; ++x) sum[r][x] = splat(0.0f);
  const int64_t w = tile_lanes();
  int64_t k = 0;
  for (; k + w <= g.k; k += w) {
    CAIRN_SUMS(left, [kHeight]);
#pragma GCC unroll 4
    for (int r = 0; r < kHeight; ++r) left[r] = load(a[r] + k);
#pragma GCC unroll 4
    for (int x = 0; x < 4; ++x) {
      const W right = load(b[x] + k);
#pragma GCC unroll 4
      for (int r = 0; r < kHeight; ++r) sum[r][x] = multiply_add(left[r], right, sum[r][x]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kHeight; ++r)
#pragma GCC unroll 4
    for (int x = 0; x < 4; ++x) {
      if (x >= columns) break;
      float value = total(sum[r][x]);
      for (int64_t rest = k; rest < g.k; ++rest) value += a[r][rest] * b[x][rest];
      float* to = g.c + (i + r) * g.ldc + j + x;
      if (g.bias != nullptr) value += g.bias[j + x];
      *to = g.add ? *to + value : value;
    }
}

HWY_INLINE void dots(const GemmBlock& g) {
  constexpr int64_t kHeight = kRegisters >= 32 ? 4 : 2;
  for (int64_t j = g.n0; j < g.n1; j += 4) {
    const int64_t columns = std::min<int64_t>(4, g.n1 - j);
    int64_t i = g.m0;
    for (; i + kHeight <= g.m1; i += kHeight) dots_of<kHeight>(g, i, j, columns);
    for (; i < g.m1; ++i) dots_of<1>(g, i, j, columns);
  }
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
