// Numbers of 16 bits: bfloat16, and IEEE 754 binary16.
#pragma once
#include <cstdint>

namespace cairn {

// bfloat16 as stored; conversion rounds to nearest even, NaN stays NaN.
struct bf16 {
  uint16_t bits;
};
constexpr float to_float(bf16 v) { return __builtin_bit_cast(float, static_cast<uint32_t>(v.bits) << 16); }
constexpr bf16 to_bf16(float f) {
  uint32_t u = __builtin_bit_cast(uint32_t, f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((u >> 16) | 0x40u)};
  return {static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

// IEEE 754 binary16 as stored: 5 bits of exponent, largest finite 65504, denormals down to 2^-24. Conversion
// rounds to nearest even; what is too large becomes infinite, NaN stays NaN.
struct f16 {
  uint16_t bits;
};
constexpr float to_float(f16 v) {
  const uint32_t sign = static_cast<uint32_t>(v.bits & 0x8000u) << 16, rest = v.bits & 0x7fffu;
  if (rest >= 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x400u) return __builtin_bit_cast(float, sign | ((rest << 13) + (112u << 23)));
  const float small = static_cast<float>(rest) * 0x1p-24f;
  return sign != 0 ? -small : small;
}
constexpr f16 to_f16(float f) {
  const uint32_t u = __builtin_bit_cast(uint32_t, f), a = u & 0x7fffffffu;
  const auto sign = static_cast<uint16_t>(u >> 16 & 0x8000u);
  const auto with_sign = [sign](uint32_t bits) { return f16{static_cast<uint16_t>(sign | bits)}; };
  if (a > 0x7f800000u) return with_sign(0x7e00u | (a >> 13 & 0x3ffu));
  if (a >= 0x477ff000u) return with_sign(0x7c00u);  // 65520 and more
  if (a >= 0x38800000u) return with_sign((a + 0xfffu + (a >> 13 & 1u) - (112u << 23)) >> 13);
  // A denormal: next to 0.5 floats lie 2^-24 apart, so this addition rounds as it should.
  const float shifted = __builtin_bit_cast(float, a) + 0.5f;
  return with_sign(__builtin_bit_cast(uint32_t, shifted) - 0x3f000000u);
}

// From float to T, rounded to nearest even.
template <class T>
T round_to(float f);
template <>
inline float round_to<float>(float f) {
  return f;
}
template <>
inline bf16 round_to<bf16>(float f) {
  return to_bf16(f);
}
template <>
inline f16 round_to<f16>(float f) {
  return to_f16(f);
}
inline float to_float(float f) { return f; }

}  // namespace cairn
