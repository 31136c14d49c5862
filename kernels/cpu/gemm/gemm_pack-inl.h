// What a tile of a float32 product reads, laid out in the order in which it reads it: strips of so many
// numbers for each step of k. Included inside foreach_target files (per-target include guard).
#if defined(CAIRN_KERNELS_CPU_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_GEMM_PACK_INL_H_
#undef CAIRN_KERNELS_CPU_GEMM_PACK_INL_H_
#else
#define CAIRN_KERNELS_CPU_GEMM_PACK_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void copy4(const float* from, float* to) { store(load(from), to); }
HWY_INLINE void transpose4(const float* from, int64_t ld, float* to, int64_t to_step) {
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 4; ++j) to[j * to_step + i] = from[i * ld + j];
}
#else
using Four = hn::FixedTag<float, 4>;
HWY_INLINE void copy4(const float* from, float* to) { hn::StoreU(hn::LoadU(Four(), from), Four(), to); }

// 4 rows of `from` (ld apart) x 4 columns, transposed into 4 rows of `to` (to_step apart).
HWY_INLINE void transpose4(const float* from, int64_t ld, float* to, int64_t to_step) {
  const Four d;
  const hn::RebindToFloat<hn::RepartitionToWide<hn::RebindToUnsigned<Four> > > wide;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + ld), r2 = hn::LoadU(d, from + 2 * ld),
             r3 = hn::LoadU(d, from + 3 * ld);
  const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, to + to_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, to + 2 * to_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, to + 3 * to_step);
}
#endif

// A strip of `width` numbers (a multiple of 4) per step of k (missing ones zero), `count` of them from memory where element
// (k, i) lies at from[k * step + i * one]; step or one is 1.
HWY_INLINE void pack_strip(int64_t width, const float* from, int64_t step, int64_t one, int64_t count,
                           int64_t k, float* to) {
  if (count < width) std::fill(to, to + k * width, 0.0f);
  if (one == 1) {
    for (int64_t x = 0; x < k; ++x) {
      const float* row = from + x * step;
      if (count == tile_columns() && count == width)
#pragma GCC unroll 4
        for (int v = 0; v < kTileVectors; ++v)
          store(load(row + v * tile_lanes()), to + x * width + v * tile_lanes());
      else if (count == width)
        for (int64_t i = 0; i < width; i += 4) copy4(row + i, to + x * width + i);
      else
        std::copy(row, row + count, to + x * width);
    }
    return;
  }
  // 16 x 16 at a time: a line of `from` is read at once, whatever lies at the same place of the cache, and
  // the lines of `to` are written while they are near.
  constexpr int64_t kSide = 16;
  for (int64_t i = 0; i < count; i += kSide) {
    const int64_t end = std::min(count, i + kSide);
    for (int64_t x = 0; x < k; x += kSide) {
      const int64_t x_end = std::min(k, x + kSide);
      int64_t j = i;
      for (; j + 4 <= end; j += 4) {
        int64_t y = x;
        for (; y + 4 <= x_end; y += 4) transpose4(from + j * one + y, one, to + y * width + j, width);
        for (; y < x_end; ++y)
          for (int64_t r = j; r < j + 4; ++r) to[y * width + r] = from[r * one + y];
      }
      for (; j < end; ++j)
        for (int64_t y = x; y < x_end; ++y) to[y * width + j] = from[j * one + y];
    }
  }
}

// `count` rows of a transposed A, from[k * step + i], as strips of kWidth: a few rows of memory at a time, so that lines of a strip
// are written at once (strips may lie at the same place of the cache) and lines of as many rows are read from it.
template <int64_t kWidth>
HWY_INLINE void pack_strips(const float* from, int64_t step, int64_t count, int64_t k, float* to) {
  constexpr int64_t kSteps = 8;
  const int64_t whole = count / kWidth * kWidth;
  for (int64_t x = 0; x < k; x += kSteps) {
    const int64_t steps = std::min(kSteps, k - x);
    const float* rows = from + x * step;
    float* at = to + x * kWidth;
    for (int64_t i = 0; i < whole; i += kWidth, at += kWidth * k)
      for (int64_t y = 0; y < steps; ++y)
#pragma GCC unroll 2
        for (int64_t j = 0; j < kWidth; j += 4) copy4(rows + y * step + i + j, at + y * kWidth + j);
  }
  if (whole < count) pack_strip(kWidth, from + whole, step, 1, count - whole, k, to + whole * k);
}

// `count` rows of A, either way that they lie, as strips of a tile's.
HWY_INLINE void pack_rows(const float* from, int64_t row, int64_t step, int64_t count, int64_t k, float* to) {
  if (row == 1) return pack_strips<kTileRows>(from, step, count, k, to);
  for (int64_t i = 0; i < count; i += kTileRows)
    pack_strip(kTileRows, from + i * row, step, row, std::min<int64_t>(kTileRows, count - i), k, to + i * k);
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
