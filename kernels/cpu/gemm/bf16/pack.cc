// Operands of bfloat16 products in the order in which they are read; gemm.h has the layouts.
#include <algorithm>

#include "kernels/cpu/gemm/bf16/block.h"
#include "kernels/cpu/gemm/bf16/transpose16.h"
#include "kernels/cpu/simd/features.h"

#if defined(__x86_64__)
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")

namespace cairn::kernels::cpu {
namespace {

static_assert(kTileGroup == 2);

// Up to 32 neighbouring elements as bfloat16; the others are zero.
inline __m512i load32(const bf16* p, int64_t n) {
  return _mm512_maskz_loadu_epi16(n >= 32 ? ~0u : (1u << n) - 1u, p);
}
inline __m512i load32(const float* p, int64_t n) {
  const int64_t high = n - 16;
  const __m512 l = _mm512_maskz_loadu_ps(static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1u), p);
  const __m512 h = high <= 0 ? _mm512_setzero_ps()
                             : _mm512_maskz_loadu_ps(
                                   static_cast<__mmask16>(high >= 16 ? 0xffff : (1u << high) - 1u), p + 16);
  const __m512bh both = _mm512_cvtne2ps_pbh(h, l);
  return reinterpret_cast<const __m512i&>(both);
}

// Tiles are read row by row of w, which lie far from each other: lines of the tile so many steps later are fetched meanwhile.
constexpr int64_t kTilesAhead = 2;

template <class T>
void pack_transposed_typed(const T* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0,
                           int64_t p1) {
  const int64_t steps = round_up(k, kTileK) / kTileK;
  for (int64_t p = p0; p < p1; ++p)
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t over = (s + kTilesAhead) / steps, ahead_s = (s + kTilesAhead) % steps;
      const T* const ahead = w + (p + over) * kPanel * ld + ahead_s * kTileK;
      for (int64_t half = 0; half < 2; ++half) {
        const int64_t column = p * kPanel + half * 16, left = k - s * kTileK;
        __m512i r[16];
#pragma GCC unroll 16
        for (int64_t j = 0; j < 16; ++j) {
          r[j] = column + j < n ? load32(w + (column + j) * ld + s * kTileK, left) : _mm512_setzero_si512();
          for (size_t line = 0; line < kTileK * sizeof(T); line += 64)
            __builtin_prefetch(reinterpret_cast<const char*>(ahead + (half * 16 + j) * ld) + line);
        }
        transpose16(r);
        bf16* to = packed + ((p * steps + s) * 2 + half) * 512;
#pragma GCC unroll 16
        for (int64_t j = 0; j < 16; ++j) {
          __builtin_prefetch(to + kTilesAhead * 1024 + j * 32, 1);
          _mm512_storeu_si512(to + j * 32, r[j]);
        }
      }
    }
}

template <class T>
void pack_typed(const T* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0, int64_t p1) {
  const int64_t steps = round_up(k, kTileK) / kTileK;
  const __m512i low = _mm512_load_si512(kPairsLow), high = _mm512_load_si512(kPairsHigh);
  for (int64_t s = 0; s < steps; ++s)
    for (int64_t p = p0; p < p1; ++p) {
      const int64_t left = n - p * kPanel, over = (p + kTilesAhead - p0) / (p1 - p0),
                    ahead_p = p0 + (p + kTilesAhead - p0) % (p1 - p0);
      const T* const ahead = w + (s + over) * kTileK * ld + ahead_p * kPanel;
      bf16* to = packed + (p * steps + s) * 1024;
      for (int64_t pair = 0; pair < 16; ++pair, to += 32) {
        const int64_t row = s * kTileK + 2 * pair;
        const T* from = w + row * ld + p * kPanel;
        const __m512i r0 = row < k ? load32(from, left) : _mm512_setzero_si512();
        const __m512i r1 = row + 1 < k ? load32(from + ld, left) : _mm512_setzero_si512();
        for (size_t line = 0; line < kPanel * sizeof(T); line += 64) {
          __builtin_prefetch(reinterpret_cast<const char*>(ahead + 2 * pair * ld) + line);
          __builtin_prefetch(reinterpret_cast<const char*>(ahead + (2 * pair + 1) * ld) + line);
        }
        _mm512_storeu_si512(to, _mm512_permutex2var_epi16(r0, low, r1));
        _mm512_storeu_si512(to + 512, _mm512_permutex2var_epi16(r0, high, r1));
      }
    }
}

}  // namespace

void pack_b_transposed(const float* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0,
                       int64_t p1) {
  pack_transposed_typed(w, ld, n, k, packed, p0, p1);
}
void pack_b_transposed(const bf16* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0,
                       int64_t p1) {
  pack_transposed_typed(w, ld, n, k, packed, p0, p1);
}
void pack_b(const float* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0, int64_t p1) {
  pack_typed(w, ld, n, k, packed, p0, p1);
}
void pack_b(const bf16* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0, int64_t p1) {
  pack_typed(w, ld, n, k, packed, p0, p1);
}

void pack_a_transposed(const bf16* a, int64_t ld, int64_t m, int64_t k, bf16* packed, int64_t g0,
                       int64_t g1) {
  const int64_t steps = round_up(k, kTileK) / kTileK;
  const bool pairs = blocks_of_pairs();
  const __m512i low = _mm512_load_si512(kPairsLow), high = _mm512_load_si512(kPairsHigh);
  const auto put = [pairs](__m512i(&tile)[16], bf16* to) {
    if (!pairs) transpose16(tile);
#pragma GCC unroll 16
    for (int64_t j = 0; j < 16; ++j) _mm512_storeu_si512(to + j * 32, tile[j]);
  };
  // Two blocks at a time: a cache line of `a` holds 32 columns.
  for (int64_t g = g0; g < g1; g += 2)
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t left = std::min((g1 - g) * 16, m - g * 16);
      __m512i first[16], second[16];
#pragma GCC unroll 16
      for (int64_t pair = 0; pair < 16; ++pair) {
        const int64_t row = s * kTileK + 2 * pair;
        const bf16* from = a + row * ld + g * 16;
        __builtin_prefetch(from + kGradRows, 0, 2);
        __builtin_prefetch(from + ld + kGradRows, 0, 2);
        const __m512i r0 = row < k ? load32(from, left) : _mm512_setzero_si512();
        const __m512i r1 = row + 1 < k ? load32(from + ld, left) : _mm512_setzero_si512();
        first[pair] = _mm512_permutex2var_epi16(r0, low, r1);
        second[pair] = _mm512_permutex2var_epi16(r0, high, r1);
      }
      bf16* const to = packed + (g * steps + s) * 512;
      put(first, to);
      if (g + 1 < g1) put(second, to + steps * 512);
    }
}

}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES
#elif !CAIRN_BFMMLA  // whose are in bf16_pack_neon.cc
// Never called where has_bf16_products() is false.
namespace cairn::kernels::cpu {
void pack_b_transposed(const float*, int64_t, int64_t, int64_t, bf16*, int64_t, int64_t) {}
void pack_b_transposed(const bf16*, int64_t, int64_t, int64_t, bf16*, int64_t, int64_t) {}
void pack_b(const float*, int64_t, int64_t, int64_t, bf16*, int64_t, int64_t) {}
void pack_b(const bf16*, int64_t, int64_t, int64_t, bf16*, int64_t, int64_t) {}
void pack_a_transposed(const bf16*, int64_t, int64_t, int64_t, bf16*, int64_t, int64_t) {}
}  // namespace cairn::kernels::cpu
#endif
