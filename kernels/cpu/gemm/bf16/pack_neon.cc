// Operands of bfloat16 products in the order in which BFMMLA reads them; gemm.h has the layouts.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/simd/features.h"

#if CAIRN_BFMMLA
#include <arm_neon.h>
#include <hwy/base.h>

HWY_PUSH_ATTRIBUTES("arch=armv8.2-a+bf16")

namespace cairn::kernels::cpu {
namespace {

static_assert(kTileGroup == 4);

inline uint16x8_t load_whole(const bf16* p) { return vld1q_u16(reinterpret_cast<const uint16_t*>(p)); }
inline uint16x8_t load_whole(const float* p) {
  return vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(vld1q_f32(p)), vld1q_f32(p + 4)));
}
// Up to 8 neighbouring elements as bfloat16; the others are zero.
template <class T>
inline uint16x8_t load8(const T* p, int64_t n) {
  if (n >= 8) return load_whole(p);
  T part[8] = {};
  if (n > 0) std::memcpy(part, p, static_cast<size_t>(n) * sizeof(T));
  return load_whole(part);
}

template <class T>
void pack_transposed_typed(const T* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0,
                           int64_t p1) {
  const int64_t steps = round_up(k, kTileK) / kTileK;
  for (int64_t p = p0; p < p1; ++p)
    for (int64_t s = 0; s < steps; ++s)
      for (int64_t j = 0; j < kPanel; ++j) {
        const int64_t column = p * kPanel + j;
        const T* from = w + column * ld + s * kTileK;
        auto* to = reinterpret_cast<uint16_t*>(packed) + (p * steps + s) * 1024 + j / 16 * 512 + j % 16 * 4;
        for (int64_t i = 0; i < kTileK; i += 8, to += 128) {
          const uint16x8_t v = load8(from + i, column < n ? k - s * kTileK - i : 0);
          vst1_u16(to, vget_low_u16(v));
          vst1_u16(to + 64, vget_high_u16(v));
        }
      }
}

// Four rows of eight columns, which are stored column by column.
template <class T>
inline uint16x8x4_t four_rows(const T* from, int64_t ld, int64_t rows, int64_t columns) {
  uint16x8x4_t r;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) r.val[i] = load8(from + i * ld, i < rows ? columns : 0);
  return r;
}

template <class T>
void pack_typed(const T* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0, int64_t p1) {
  const int64_t steps = round_up(k, kTileK) / kTileK;
  // Rows outermost: reads run along memory.
  for (int64_t row = 0; row < steps * kTileK; row += 4)
    for (int64_t p = p0; p < p1; ++p)
      for (int64_t j = 0; j < kPanel; j += 8) {
        const int64_t column = p * kPanel + j;
        vst4q_u16(reinterpret_cast<uint16_t*>(packed) + (p * steps + row / kTileK) * 1024 + j / 16 * 512 +
                      row % kTileK * 16 + j % 16 * 4,
                  four_rows(w + row * ld + column, ld, k - row, n - column));
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
  for (int64_t g = g0; g < g1; ++g)
    for (int64_t row = 0; row < steps * kTileK; row += 4)
      for (int64_t i = g * 16; i < g * 16 + 16; i += 8) {
        uint16_t quads[32];
        vst4q_u16(quads, four_rows(a + row * ld + i, ld, k - row, m - i));
        bf16* to = packed + (g * steps + row / kTileK) * 512 + i % 16 * kTileK + row % kTileK;
        for (int64_t j = 0; j < 8; ++j) std::memcpy(to + j * kTileK, quads + j * 4, 8);
      }
}

}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES
#endif
