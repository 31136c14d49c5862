// Blocks of a bfloat16 product by BFMMLA, AArch64's products of 2 x 4 and 4 x 2 numbers. A vector of B is two columns of four
// steps, as they are packed; one of A is the same four steps of two rows, put together from where they lie. A sum is 2 x 2.
//
// What it computes: products of pairs are exact, the two of a pair are added, then the pairs and the sum so far, each addition
// rounded to odd (towards zero, and the last bit set where something was lost); denormals count as zero. With FEAT_EBF16
// switched on, which Linux leaves off, additions of two pairs would be fused.
#include <algorithm>

#include "kernels/cpu/gemm/bf16/block.h"
#include "kernels/cpu/simd/features.h"

#if CAIRN_BFMMLA
#include <arm_neon.h>
#include <hwy/base.h>

HWY_PUSH_ATTRIBUTES("arch=armv8.2-a+bf16")

namespace cairn::kernels::cpu {
namespace {

constexpr int kColumns = 8;  // of a block: a quarter of a panel

inline uint64x2_t load(const char* from) {
  return vreinterpretq_u64_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(from)));
}
inline bfloat16x8_t numbers(uint64x2_t v) { return vreinterpretq_bf16_u64(v); }
inline float32x4_t low_halves(float32x4_t a, float32x4_t b) {
  return vreinterpretq_f32_u64(vzip1q_u64(vreinterpretq_u64_f32(a), vreinterpretq_u64_f32(b)));
}
inline float32x4_t high_halves(float32x4_t a, float32x4_t b) {
  return vreinterpretq_f32_u64(vzip2q_u64(vreinterpretq_u64_f32(a), vreinterpretq_u64_f32(b)));
}

// Up to 2 kPairs rows x 8 columns. Where a last row is missing, the one before is multiplied twice and stored once.
template <int kPairs>
inline void block(const char* a, int64_t a_row, int64_t a_step, const char* b, int64_t steps, int64_t rows,
                  char* c, int64_t pitch, bool add) {
  constexpr int kRows = 2 * kPairs, kAcross = kColumns / 2;
  const char* row[kRows];
  float32x4_t sum[kPairs][kAcross];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) row[r] = a + std::min<int64_t>(r, rows - 1) * a_row;
#pragma GCC unroll 8
  for (int r = 0; r < kPairs; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < kAcross; j += 2) {
      sum[r][j] = sum[r][j + 1] = vdupq_n_f32(0);
      if (!add) continue;
      const char* const upper = c + 2 * r * pitch + j * 8;
      const char* const lower = 2 * r + 1 < rows ? upper + pitch : upper;
      const float32x4_t top = vreinterpretq_f32_u64(load(upper)), bottom = vreinterpretq_f32_u64(load(lower));
      sum[r][j] = low_halves(top, bottom);
      sum[r][j + 1] = high_halves(top, bottom);
    }
  for (int64_t k = 0; k < steps; ++k, b += 2048)
    for (int64_t at = k * a_step, end = at + 64, q = 0; at < end; at += 16, q += 256) {
      uint64x2_t left[2][kPairs];
#pragma GCC unroll 8
      for (int r = 0; r < kPairs; ++r) {
        const uint64x2_t upper = load(row[2 * r] + at), lower = load(row[2 * r + 1] + at);
        left[0][r] = vzip1q_u64(upper, lower);
        left[1][r] = vzip2q_u64(upper, lower);
      }
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half)
#pragma GCC unroll 8
        for (int j = 0; j < kAcross; ++j) {
          const bfloat16x8_t right = numbers(load(b + q + half * 128 + j * 16));
#pragma GCC unroll 8
          for (int r = 0; r < kPairs; ++r) sum[r][j] = vbfmmlaq_f32(sum[r][j], numbers(left[half][r]), right);
        }
    }
#pragma GCC unroll 8
  for (int r = 0; r < kPairs; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < kAcross; j += 2) {
      auto* const to = reinterpret_cast<float*>(c + 2 * r * pitch + j * 8);
      vst1q_f32(to, low_halves(sum[r][j], sum[r][j + 1]));
      if (2 * r + 1 < rows) vst1q_f32(to + pitch / 4, high_halves(sum[r][j], sum[r][j + 1]));
    }
}

void column(const GemmOperands& g, int64_t m, int64_t m_end, int64_t panel, int64_t k0, int64_t k1, float* c,
            int64_t pitch, bool add) {
  const char* const a = static_cast<const char*>(g.a) + k0 / kTileK * g.a_step;
  const char* const b = reinterpret_cast<const char*>(g.b) + panel * g.b_panel * 2 + k0 / kTileK * 2048;
  const int64_t steps = (k1 - k0) / kTileK;
  char* to = reinterpret_cast<char*>(c);
  while (m < m_end) {
    const int64_t left = std::min(m_end - m, 16 - m % 16);  // rows of one block of A
    const int64_t rows = left >= 8 ? 8 : left > 4 ? 4 : left;
    const char* const from = a + m / 16 * g.a_block + m % 16 * g.a_row;
    const auto& block_of = rows > 4 ? block<4> : rows > 2 ? block<2> : block<1>;
    for (int64_t j = 0; j < kPanel; j += kColumns)
      block_of(from, g.a_row, g.a_step, b + j / 16 * 1024 + j % 16 * 8, steps, rows, to + j * 4, pitch, add);
    m += rows;
    to += rows * pitch;
  }
}

void nothing() {}

}  // namespace

// A share of k is so long that B's part of it fits the first cache.
const Bf16Blocks kMatrixBlocks{
    .max_share = 384, .near_share = 384, .begin = nothing, .column = column, .end = nothing};

}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES
#else
namespace cairn::kernels::cpu {
const Bf16Blocks kMatrixBlocks{};  // never used elsewhere
}  // namespace cairn::kernels::cpu
#endif
