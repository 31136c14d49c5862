// FP8: numbers of 8 bits, 4 of them exponent and 3 mantissa (e4m3, without infinities), in blocks of 128 values of a row
// with a scale in float32. A value is its number times the scale.
#pragma once
#include "runtime/formats/arithmetic.h"

namespace cairn::formats {
namespace e4m3 {

inline constexpr float kLargest = 448.0f;

constexpr float decode(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24, rest = code & 0x7fu;
  if (rest == 0x7f) return __builtin_bit_cast(float, sign | 0x7fc00000u);
  if (rest >= 8) return __builtin_bit_cast(float, sign | ((rest << 20) + (120u << 23)));
  const float small = static_cast<float>(rest) * 0x1p-9f;
  return sign != 0 ? -small : small;
}
// To nearest, ties to even; what is too large becomes the largest.
constexpr uint8_t encode(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x), sign = u >> 24 & 0x80u;
  const float a = magnitude(x);
  const uint32_t bits = __builtin_bit_cast(uint32_t, a);
  uint32_t code = 0x7e;
  if (a < 0x1p-6f)  // next to 2^14 floats lie 2^-9 apart, so this addition rounds as it should
    code = __builtin_bit_cast(uint32_t, a + 0x1p14f) - 0x46800000u;
  else if (a < kLargest)
    code = (bits + 0x7ffffu + (bits >> 20 & 1u) - (120u << 23)) >> 20;
  return static_cast<uint8_t>(sign | code);
}

}  // namespace e4m3

struct Fp8 {
  static constexpr int kBlock = 128;
  struct Block {
    uint8_t codes[kBlock];
    float scale;
  };

  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    float largest = 0;
    if (!find_largest(from, count, largest)) return false;
    to.scale = largest / e4m3::kLargest;
    if (to.scale * e4m3::kLargest > kLargestFloat) return false;
    for (int64_t i = 0; i < kBlock; ++i)
      to.codes[i] = i < count && to.scale > 0 ? e4m3::encode(from[i] / to.scale) : uint8_t{0};
    return true;
  }
  static constexpr float decode(const Block& from, int i) { return e4m3::decode(from.codes[i]) * from.scale; }
};
static_assert(sizeof(Fp8::Block) == 132);

}  // namespace cairn::formats
