// The inside of float32 products for one Highway target: a tile of C in registers, and the packing of what it
// reads. Included inside foreach_target files (per-target include guard).
#if defined(CAIRN_KERNELS_CPU_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_GEMM_TILE_INL_H_
#undef CAIRN_KERNELS_CPU_GEMM_TILE_INL_H_
#else
#define CAIRN_KERNELS_CPU_GEMM_TILE_INL_H_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// Rows and vectors of a tile: sums, a row of B and one number of A fill the registers.
// Without AVX-512 a panel of B must fit the nearest cache: vectors are half as long, so that more of
// them are read for as many sums.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kTileRows = 8, kTileVectors = 3;
inline constexpr int64_t kDepth = kMaxDepth, kPackedDepth = kMaxPackedDepth;
#elif HWY_TARGET == HWY_NEON || HWY_TARGET == HWY_SVE
inline constexpr int kTileRows = 8, kTileVectors = 3;
inline constexpr int64_t kDepth = 256, kPackedDepth = 256;
#elif HWY_TARGET != HWY_SCALAR
inline constexpr int kTileRows = 4, kTileVectors = 3;
inline constexpr int64_t kDepth = 256, kPackedDepth = 256;
#else
inline constexpr int kTileRows = 4, kTileVectors = 2;
inline constexpr int64_t kDepth = 256, kPackedDepth = 256;
#endif
// How near the next panel of B is brought, for __builtin_prefetch: where panels are small, into the first cache.
inline constexpr int kNear = HWY_TARGET == HWY_AVX2 ? 3 : 2;
static_assert(HWY_TARGET != HWY_AVX2 || kDepth == kPackedDepth, "packed rows of A make the same sums");

#undef CAIRN_SUMS
// Highway's portable target has vectors of one number; compilers know vectors of four for every processor.
#if HWY_TARGET == HWY_SCALAR
inline constexpr int64_t kMostLanes = 4;
HWY_INLINE int64_t tile_lanes() { return kMostLanes; }
#define CAIRN_SUMS(name, dimensions) W name dimensions
using W = float __attribute__((vector_size(16)));
HWY_INLINE W load(const float* p) {
  W v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
HWY_INLINE void store(W v, float* p) { std::memcpy(p, &v, sizeof v); }
HWY_INLINE W splat(float x) { return W{x, x, x, x}; }
HWY_INLINE W add(W a, W b) { return a + b; }
HWY_INLINE W multiply_add(W a, W b, W c) { return a * b + c; }
HWY_INLINE float total(W v) { return (v[0] + v[2]) + (v[1] + v[3]); }
#else
// A tile's columns divide kColumnUnit: vectors of SVE are used up to 512 bits (features.cc).
inline constexpr int64_t kMostLanes = std::min<int64_t>(static_cast<int64_t>(kMaxLanes), 16);
HWY_INLINE int64_t tile_lanes() { return lanes(); }
#define CAIRN_SUMS(name, dimensions) CAIRN_VECTORS(name, dimensions)
using W = V;
HWY_INLINE W load(const float* p) { return hn::LoadU(DF(), p); }
HWY_INLINE void store(W v, float* p) { hn::StoreU(v, DF(), p); }
HWY_INLINE W splat(float x) { return set(x); }
HWY_INLINE W multiply_add(W a, W b, W c) { return hn::MulAdd(a, b, c); }
HWY_INLINE float total(W v) { return sum_lanes(v); }
#endif
inline constexpr int64_t kMostColumns = kTileVectors * kMostLanes;
HWY_INLINE int64_t tile_columns() { return kTileVectors * tile_lanes(); }

struct Tile {
  const float* a;  // A(r, k) = a[r * a_row + k * a_step]
  int64_t a_row, a_step;
  const float* b;  // B(k, j) = b[k * b_step + j]
  int64_t b_step;
  int64_t k;
  float* c;
  int64_t ldc;
  const float* bias;
  bool add;
  const char* next[2];  // lines of memory that the following panel will read, for every 16 steps of k
};

// C (+)= A B (+ bias) for kHeight rows and kVectors vectors of columns. The sums over k are kept in registers.
template <int kHeight, int kVectors>
HWY_NOINLINE void tile(const Tile& t) {
  const int64_t w = tile_lanes();
  CAIRN_SUMS(sum, [kHeight][kVectors]);
#pragma GCC unroll 8
  for (int r = 0; r < kHeight; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[r][v] = splat(0.0f);
  const float* a[kHeight];
#pragma GCC unroll 8
  for (int r = 0; r < kHeight; ++r) {
    a[r] = t.a + r * t.a_row;
    for (int64_t j = 0; j < kVectors * w; j += 16) hwy::Prefetch(t.c + r * t.ldc + j);
    hwy::Prefetch(t.c + r * t.ldc + kVectors * w - 1);
  }
  const float* b = t.b;
  const int64_t step = t.a_step;
  const char *next0 = t.next[0], *next1 = t.next[1];
  for (int64_t k = 0; k < t.k; ++k) {
    if ((k & 15) == 0) {
      __builtin_prefetch(next0 + k * 4, 0, kNear);
      __builtin_prefetch(next1 + k * 4, 0, kNear);
    }
    CAIRN_SUMS(right, [kVectors]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) right[v] = load(b + v * w);
#pragma GCC unroll 8
    for (int r = 0; r < kHeight; ++r) {
      const W left = splat(a[r][k * step]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
    }
    b += t.b_step;
  }
  if (t.bias != nullptr) {
    CAIRN_SUMS(bias, [kVectors]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) bias[v] = load(t.bias + v * w);
#pragma GCC unroll 8
    for (int r = 0; r < kHeight; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = add(sum[r][v], bias[v]);
  }
  float* const c = t.c;
  const int64_t ldc = t.ldc;
  if (t.add) {
#pragma GCC unroll 8
    for (int r = 0; r < kHeight; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = add(sum[r][v], load(c + r * ldc + v * w));
  }
#pragma GCC unroll 8
  for (int r = 0; r < kHeight; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(sum[r][v], c + r * ldc + v * w);
}

// The tile of `vectors` vectors and `rows` rows.
template <int... kHeights>
HWY_INLINE void tile_of(int vectors, int64_t rows, const Tile& t, std::integer_sequence<int, kHeights...>) {
  using Function = void (*)(const Tile&);
  static constexpr Function kTiles[kTileVectors][sizeof...(kHeights)] = {
    {tile<kHeights + 1, 1>...},
    {tile<kHeights + 1, 2>...},
#if HWY_TARGET != HWY_SCALAR
    {tile<kHeights + 1, 3>...},
#endif
  };
  kTiles[vectors - 1][rows - 1](t);
}
HWY_INLINE void tile_of(int vectors, int64_t rows, const Tile& t) {
  tile_of(vectors, rows, t, std::make_integer_sequence<int, kTileRows>());
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
