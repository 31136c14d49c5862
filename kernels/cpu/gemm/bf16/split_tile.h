// float32 numbers as tiles of the bfloat16 parts that they are the sum of (amx_f32.h says why).
#pragma once
#include <cstdint>

#include "kernels/cpu/gemm/bf16/transpose16.h"

#if defined(__x86_64__)
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")

namespace cairn::kernels::cpu {

inline constexpr int64_t kTileBytes = 1024;

inline __m512 rounded_to_bf16(__m512 v) {
  const __m256bh half = _mm512_cvtneps_pbh(v);
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(reinterpret_cast<const __m256i&>(half)), 16));
}
inline __mmask16 first_of(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

// 16 i (rows of A or columns of B) x 32 k as kParts tiles, the largest part first. k_contiguous: from[i * ld + k], else from[k * ld +
// i]. The tile of A has rows i, that of B rows of pairs of k; the memory's order makes one of them, a
// transpose the other.
template <int64_t kParts>
inline void split_tile(const float* from, int64_t ld, bool k_contiguous, bool left, int64_t i_left,
                       int64_t k_left, char* to) {
  __m512i r[kParts][16];
  const __mmask16 mask_i = first_of(i_left), low = first_of(k_left), high = first_of(k_left - 16);
#pragma GCC unroll 16
  for (int64_t j = 0; j < 16; ++j) {
    __m512 p, q;
    if (k_contiguous) {
      p = _mm512_maskz_loadu_ps(j < i_left ? low : 0, from + j * ld);
      q = _mm512_maskz_loadu_ps(j < i_left ? high : 0, from + j * ld + 16);
    } else {
      p = _mm512_maskz_loadu_ps(2 * j < k_left ? mask_i : 0, from + 2 * j * ld);
      q = _mm512_maskz_loadu_ps(2 * j + 1 < k_left ? mask_i : 0, from + (2 * j + 1) * ld);
    }
#pragma GCC unroll 16
    for (int64_t level = 0; level < kParts; ++level) {
      const __m512 p_top = rounded_to_bf16(p), q_top = rounded_to_bf16(q);
      if (k_contiguous) {
        const __m512bh both = _mm512_cvtne2ps_pbh(q_top, p_top);
        r[level][j] = reinterpret_cast<const __m512i&>(both);
      } else {
        r[level][j] =
            _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(p_top), 16), _mm512_castps_si512(q_top));
      }
      p = _mm512_sub_ps(p, p_top);
      q = _mm512_sub_ps(q, q_top);
    }
  }
#pragma GCC unroll 16
  for (int64_t level = 0; level < kParts; ++level) {
    if (k_contiguous != left) transpose16(r[level]);
#pragma GCC unroll 16
    for (int64_t j = 0; j < 16; ++j) _mm512_storeu_si512(to + level * kTileBytes + j * 64, r[level][j]);
  }
}

}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES
#endif
