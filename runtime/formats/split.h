// A float32 as two tensors: a bfloat16, which is the number rounded to it, and the 16 bits below. Together they are
// the number, bit by bit. Rounding is to nearest with ties away from zero: the sum of the two as integers gives the
// number back. (To nearest even, some bfloat16 numbers have 65537 numbers that round to them, one more than 16
// bits tell apart; the two roundings differ for one number in 131072.)
#pragma once
#include "runtime/formats/half.h"

namespace cairn {

// NaN stays NaN; the largest finite numbers become infinite, as by to_bf16().
constexpr bf16 high_half(float value) {
  const uint32_t u = __builtin_bit_cast(uint32_t, value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(u >> 16 | 0x40u)};
  return {static_cast<uint16_t>((u + 0x8000u) >> 16)};
}
constexpr uint16_t low_half(float value) {
  return static_cast<uint16_t>(__builtin_bit_cast(uint32_t, value) & 0xffffu);
}
// The number; a NaN with its quiet bit set.
constexpr float join_halves(bf16 high, uint16_t low) {
  const uint32_t u = static_cast<uint32_t>(high.bits) << 16;
  if ((u & 0x7fffffffu) > 0x7f800000u) return __builtin_bit_cast(float, u | low);
  return __builtin_bit_cast(float, u + static_cast<uint32_t>(static_cast<int16_t>(low)));
}

}  // namespace cairn
