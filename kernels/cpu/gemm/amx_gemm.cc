#include "kernels/cpu/gemm/amx_gemm.h"

#include <algorithm>

#include "kernels/cpu/gemm/amx_tiles.h"

#if defined(__x86_64__)
#ifdef __clang__
#pragma clang attribute push(                                                                   \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")
#endif

namespace cairn::kernels::cpu {
namespace {

struct Step {
  const char *a0, *a1;  // a1 == nullptr: at most 16 rows
  const char* b;
  int64_t a_row, a_step, steps;
};

// One block of at most 32 x 32: c (+)= A B over `steps` tiles of k; pitch in bytes.
inline void block(const Step& s, float* c, int64_t pitch, bool add) {
  char* c00 = reinterpret_cast<char*>(c);
  char* c10 = c00 + 16 * pitch;
  const char *a0 = s.a0, *a1 = s.a1, *b = s.b;
  if (a1 != nullptr) {
    if (add) {
      _tile_loadd(0, c00, pitch);
      _tile_loadd(1, c00 + 64, pitch);
      _tile_loadd(2, c10, pitch);
      _tile_loadd(3, c10 + 64, pitch);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    for (int64_t k = 0; k < s.steps; ++k) {
      _tile_loadd(6, b, 64);
      _tile_loadd(4, a0, s.a_row);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b + 1024, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, a1, s.a_row);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
      a0 += s.a_step;
      a1 += s.a_step;
      b += 2048;
    }
    _tile_stored(0, c00, pitch);
    _tile_stored(1, c00 + 64, pitch);
    _tile_stored(2, c10, pitch);
    _tile_stored(3, c10 + 64, pitch);
    return;
  }
  if (add) {
    _tile_loadd(0, c00, pitch);
    _tile_loadd(1, c00 + 64, pitch);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  for (int64_t k = 0; k < s.steps; ++k) {
    _tile_loadd(4, a0, s.a_row);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + 1024, 64);
    _tile_dpbf16ps(1, 4, 7);
    a0 += s.a_step;
    b += 2048;
  }
  _tile_stored(0, c00, pitch);
  _tile_stored(1, c00 + 64, pitch);
}

// Rows [m, m_end) x one panel x steps [k0, k1): blocks of 32 rows, the last one of what is left.
void column(const GemmOperands& g, int64_t m, int64_t m_end, int64_t panel, int64_t k0, int64_t k1, float* c,
            int64_t pitch, bool add) {
  const char* a = static_cast<const char*>(g.a) + k0 / kTileK * g.a_step;
  const char* b = reinterpret_cast<const char*>(g.b) + panel * g.b_panel * 2 + k0 / kTileK * 2048;
  const int64_t steps = (k1 - k0) / kTileK;
  for (; m < m_end; m += 32) {
    const char* a0 = a + m / 16 * g.a_block;
    const int64_t rows = std::min<int64_t>(32, m_end - m);
    if (rows < 32) configure_tiles(std::min<int64_t>(16, rows), std::max<int64_t>(0, rows - 16));
    block({a0, rows > 16 ? a0 + g.a_block : nullptr, b, g.a_row, g.a_step, steps}, c, pitch, add);
    if (rows < 32) configure_tiles(16, 16);
    c += 8 * pitch;
  }
}

// Steps of k that one pass takes: B's part of them stays in the nearest caches while rows of A go by.
int64_t k_share(int64_t k) {
  constexpr int64_t kMax = 1024;
  const int64_t parts = (k + kMax - 1) / kMax;
  return round_up((k + parts - 1) / parts, kTileK);
}

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

alignas(64) constexpr uint16_t kPairsLow[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
alignas(64) constexpr uint16_t kPairsHigh[32] = {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21,
                                                 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58,
                                                 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};

template <class T>
void pack_transposed_typed(const T* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0,
                           int64_t p1) {
  const int64_t steps = round_up(k, kTileK) / kTileK;
  for (int64_t p = p0; p < p1; ++p)
    for (int64_t s = 0; s < steps; ++s)
      for (int64_t half = 0; half < 2; ++half) {
        const int64_t column = p * kPanel + half * 16, left = k - s * kTileK;
        __m512i r[16];
#pragma GCC unroll 16
        for (int64_t j = 0; j < 16; ++j)
          r[j] = column + j < n ? load32(w + (column + j) * ld + s * kTileK, left) : _mm512_setzero_si512();
        transpose16(r);
        bf16* to = packed + ((p * steps + s) * 2 + half) * 512;
#pragma GCC unroll 16
        for (int64_t j = 0; j < 16; ++j) _mm512_storeu_si512(to + j * 32, r[j]);
      }
}

template <class T>
void pack_typed(const T* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0, int64_t p1) {
  const int64_t steps = round_up(k, kTileK) / kTileK;
  const __m512i low = _mm512_load_si512(kPairsLow), high = _mm512_load_si512(kPairsHigh);
  // Row pairs outermost: reads run along memory.
  for (int64_t s = 0; s < steps; ++s)
    for (int64_t pair = 0; pair < 16; ++pair) {
      const int64_t row = s * kTileK + 2 * pair;
      for (int64_t p = p0; p < p1; ++p) {
        const int64_t left = n - p * kPanel;
        const T* from = w + row * ld + p * kPanel;
        const __m512i r0 = row < k ? load32(from, left) : _mm512_setzero_si512();
        const __m512i r1 = row + 1 < k ? load32(from + ld, left) : _mm512_setzero_si512();
        bf16* to = packed + (p * steps + s) * 1024 + pair * 32;
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
  const __m512i low = _mm512_load_si512(kPairsLow), high = _mm512_load_si512(kPairsHigh);
  // Two blocks at a time: a cache line of `a` holds 32 columns.
  for (int64_t g = g0; g < g1; g += 2)
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t left = std::min((g1 - g) * 16, m - g * 16);
      __m512i first[16], second[16];
#pragma GCC unroll 16
      for (int64_t pair = 0; pair < 16; ++pair) {
        const int64_t row = s * kTileK + 2 * pair;
        const bf16* from = a + row * ld + g * 16;
        const __m512i r0 = row < k ? load32(from, left) : _mm512_setzero_si512();
        const __m512i r1 = row + 1 < k ? load32(from + ld, left) : _mm512_setzero_si512();
        first[pair] = _mm512_permutex2var_epi16(r0, low, r1);
        second[pair] = _mm512_permutex2var_epi16(r0, high, r1);
      }
      transpose16(first);
      bf16* to = packed + (g * steps + s) * 512;
#pragma GCC unroll 16
      for (int64_t j = 0; j < 16; ++j) _mm512_storeu_si512(to + j * 32, first[j]);
      if (g + 1 >= g1) continue;
      transpose16(second);
      to += steps * 512;
#pragma GCC unroll 16
      for (int64_t j = 0; j < 16; ++j) _mm512_storeu_si512(to + j * 32, second[j]);
    }
}

void amx_gemm(const GemmOperands& g, int64_t m0, int64_t m1, int64_t n, int64_t p0, int64_t p1,
              float* scratch, const Epilogue& epilogue) {
  const int64_t share = k_share(g.k);
  configure_tiles(16, 16);
  for (int64_t m = m0; m < m1; m += kGemmRows) {
    const int64_t m_end = std::min(m1, m + kGemmRows);
    for (int64_t p = p0; p < p1; ++p) {
      for (int64_t k = 0; k < g.k; k += share)
        column(g, m, m_end, p, k, std::min(g.k, k + share), scratch, kPanel * 4, k > 0);
      epilogue.block(scratch, m, m_end - m, p * kPanel, std::min(kPanel, n - p * kPanel));
    }
    epilogue.finished(m, m_end - m, p0 * kPanel, std::min(n, p1 * kPanel));
  }
  _tile_release();
}

void amx_gemm_f32(const GemmOperands& g, int64_t m0, int64_t m1, int64_t n, int64_t p0, int64_t p1,
                  float* scratch, float* c, int64_t ldc, bool add) {
  const int64_t share = k_share(g.k);
  configure_tiles(16, 16);
  for (int64_t k = 0; k < g.k; k += share) {
    const int64_t k_end = std::min(g.k, k + share);
    const bool keep = add || k > 0;
    for (int64_t m = m0; m < m1; m += kGemmRows) {
      const int64_t m_end = std::min(m1, m + kGemmRows);
      for (int64_t p = p0; p < p1; ++p) {
        float* to = c + m * ldc + p * kPanel;
        const int64_t columns = std::min(kPanel, n - p * kPanel);
        if (columns == kPanel) {
          column(g, m, m_end, p, k, k_end, to, ldc * 4, keep);
          continue;
        }
        column(g, m, m_end, p, k, k_end, scratch, kPanel * 4, false);
        for (int64_t r = 0; r < m_end - m; ++r)
          for (int64_t j = 0; j < columns; ++j)
            to[r * ldc + j] = keep ? to[r * ldc + j] + scratch[r * kPanel + j] : scratch[r * kPanel + j];
      }
    }
  }
  _tile_release();
}

void amx_grad_weight(const bf16* dy, int64_t ld_dy, const bf16* x, int64_t rows, int64_t n0, int64_t n1,
                     int64_t k, float* dw, bool add, void* space) {
  bf16* block = static_cast<bf16*>(space);
  float* scratch = reinterpret_cast<float*>(static_cast<char*>(space) + packed_a_bytes(kGemmRows, rows));
  const GemmOperands g = in_blocks(block, x, round_up(rows, kTileK));
  for (int64_t n = n0; n < n1; n += kGemmRows) {
    const int64_t m = std::min(kGemmRows, n1 - n);
    pack_a_transposed(dy + n, ld_dy, m, rows, block, 0, blocks_of_a(m));
    amx_gemm_f32(g, 0, m, k, 0, panels(k), scratch, dw + n * k, k, add);
  }
}

}  // namespace cairn::kernels::cpu
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
// Never called where has_amx() is false.
namespace cairn::kernels::cpu {
void amx_grad_weight(const bf16*, int64_t, const bf16*, int64_t, int64_t, int64_t, int64_t, float*, bool,
                     void*) {}
void pack_b_transposed(const float*, int64_t, int64_t, int64_t, bf16*, int64_t, int64_t) {}
void pack_b_transposed(const bf16*, int64_t, int64_t, int64_t, bf16*, int64_t, int64_t) {}
void pack_b(const float*, int64_t, int64_t, int64_t, bf16*, int64_t, int64_t) {}
void pack_b(const bf16*, int64_t, int64_t, int64_t, bf16*, int64_t, int64_t) {}
void pack_a_transposed(const bf16*, int64_t, int64_t, int64_t, bf16*, int64_t, int64_t) {}
void amx_gemm(const GemmOperands&, int64_t, int64_t, int64_t, int64_t, int64_t, float*, const Epilogue&) {}
void amx_gemm_f32(const GemmOperands&, int64_t, int64_t, int64_t, int64_t, int64_t, float*, float*, int64_t,
                  bool) {}
}  // namespace cairn::kernels::cpu
#endif
