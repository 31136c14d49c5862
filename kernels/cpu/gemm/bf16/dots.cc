// Blocks of a bfloat16 product by AVX512_BF16's dot products of pairs. A vector of B is a row of a tile: 16 columns of
// a pair of steps; the same pair of a row of A stands in every lane of the other.
#include <algorithm>

#include "kernels/cpu/gemm/bf16/block.h"

#if defined(__x86_64__)
// GCC 12 warns about its own intrinsics (bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <hwy/base.h>
#include <immintrin.h>

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")

namespace cairn::kernels::cpu {
namespace {

inline __m512bh pairs(__m512i v) { return reinterpret_cast<const __m512bh&>(v); }
inline __m512i pair_of(const char* from) {
  int32_t both;
  __builtin_memcpy(&both, from, sizeof both);
  return _mm512_set1_epi32(both);
}

// Lines to fetch with 32 steps, and bytes from them to those that go with the next 32.
struct Lines {
  const char *first, *second;
  int64_t step;
};

// kRows x 32: sums of two vectors a row, which do not wait for each other. kPair: bytes from a pair of A to the next.
template <int kRows, int64_t kPair>
inline void block(const char* a, int64_t a_row, int64_t a_step, const char* b, int64_t steps, char* c,
                  int64_t pitch, bool add, Lines ahead) {
  __m512 low[kRows], high[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    low[r] = add ? _mm512_loadu_ps(c + r * pitch) : _mm512_setzero_ps();
    high[r] = add ? _mm512_loadu_ps(c + r * pitch + 64) : _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < steps; ++k, a += a_step, b += 2048) {
    if (kPair == 4) {
      __builtin_prefetch(ahead.first, 0, 2);
      __builtin_prefetch(ahead.second, 0, 2);
      ahead.first += ahead.step;
      ahead.second += ahead.step;
    }
#pragma GCC unroll 2
    for (int64_t pair = 0; pair < 16; ++pair) {
      const __m512bh b_low = pairs(_mm512_loadu_si512(b + pair * 64)),
                     b_high = pairs(_mm512_loadu_si512(b + 1024 + pair * 64));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512bh x = pairs(pair_of(a + r * a_row + pair * kPair));
        low[r] = _mm512_dpbf16_ps(low[r], x, b_low);
        high[r] = _mm512_dpbf16_ps(high[r], x, b_high);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(c + r * pitch, low[r]);
    _mm512_storeu_ps(c + r * pitch + 64, high[r]);
  }
}

// Where the next slice's panel begins that the blocks of this panel fetch, from step k0 on; nullptr: the next slice has no such
// panel.
inline const char* ahead_of(const Ahead& ahead, int64_t panel, int64_t k0) {
  const int64_t at = panel - ahead.first_panel;
  return at < ahead.panels ? ahead.at + at * ahead.panel + k0 / kTileK * ahead.step : nullptr;
}
// The cache lines of that panel that the block at row m fetches. near: a line that is in the cache anyway, for blocks that
// have nothing to fetch.
inline Lines lines_of(const Ahead& ahead, const char* panel, int64_t m, const char* near) {
  const int64_t block = m / 8, row = block >> ahead.shift;
  if (panel == nullptr || row >= kPanel) return {near, near, 0};
  const char* const from = panel + row * ahead.row + (block & ahead.shift) * 64;
  return {from, from + (ahead.shift == 0 ? 64 : 0), ahead.step};
}

template <int64_t kPair>
inline void rows_of(const GemmOperands& g, int64_t m, int64_t m_end, int64_t panel, int64_t k0, int64_t k1,
                    float* c, int64_t pitch, bool add) {
  const char* const a = static_cast<const char*>(g.a) + k0 / kTileK * g.a_step;
  const char* const b = reinterpret_cast<const char*>(g.b) + panel * g.b_panel * 2 + k0 / kTileK * 2048;
  const int64_t steps = (k1 - k0) / kTileK;
  char* to = reinterpret_cast<char*>(c);
  const int64_t below = (m_end - m) * pitch;
  const char* const next = ahead_of(g.ahead, panel, k0);
  while (m < m_end) {
    const int64_t rows = std::min(m_end - m, 16 - m % 16);  // of one block of A
    const char* const from = a + m / 16 * g.a_block + m % 16 * g.a_row;
    int64_t taken = 1;
    if (kPair == 4 && g.target != nullptr)
      for (int64_t r = 0; r < rows && r < 8; ++r) __builtin_prefetch(g.target + (m + r) * g.target_row, 1);
    if (kPair != 4)  // gradients of weights are far: those of the rows below are the next ones to be added to
      for (int64_t r = 0; r < rows && r < 8; ++r) {
        __builtin_prefetch(to + below + r * pitch, 1);
        __builtin_prefetch(to + below + r * pitch + 64, 1);
      }
    const Lines ahead = kPair == 4 ? lines_of(g.ahead, next, m, b) : Lines{};
    if (rows >= 8) {
      block<8, kPair>(from, g.a_row, g.a_step, b, steps, to, pitch, add, ahead);
      taken = 8;
    } else if (rows >= 4) {
      block<4, kPair>(from, g.a_row, g.a_step, b, steps, to, pitch, add, ahead);
      taken = 4;
    } else if (rows >= 2) {
      block<2, kPair>(from, g.a_row, g.a_step, b, steps, to, pitch, add, ahead);
      taken = 2;
    } else {
      block<1, kPair>(from, g.a_row, g.a_step, b, steps, to, pitch, add, ahead);
    }
    m += taken;
    to += taken * pitch;
  }
}

void column(const GemmOperands& g, int64_t m, int64_t m_end, int64_t panel, int64_t k0, int64_t k1, float* c,
            int64_t pitch, bool add) {
  (g.pairs ? rows_of<64> : rows_of<4>)(g, m, m_end, panel, k0, k1, c, pitch, add);
}

void nothing() {}

}  // namespace

// A share of k is so long that B's part of it fits the first cache, and the rows of A the second one.
const Bf16Blocks kDotBlocks{.max_share = 320,
                            .near_share = 512,
                            .begin = nothing,
                            .column = column,
                            .end = nothing,
                            .near_bytes = 512 << 10,
                            .pairs = true,
                            .fetched_bytes = 256 << 10};

}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES
#else
namespace cairn::kernels::cpu {
const Bf16Blocks kDotBlocks{};  // never used where has_bf16_products() is false
}  // namespace cairn::kernels::cpu
#endif
