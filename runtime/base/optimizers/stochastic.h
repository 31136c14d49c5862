// Stochastic rounding of parameters that are stored as bfloat16 (Gupta, Agrawal, Gopalakrishnan, Narayanan, "Deep
// learning with limited numerical precision", ICML 2015): up or down with the probabilities that make the mean
// right, so that updates far below half a unit in the last place are not lost, but happen now and then. The random
// bits are a pure function of seed, step, parameter and element: any number of threads, any backend and any
// way of streaming give the same.
#pragma once
#include "runtime/base/random.h"
#include "runtime/base/tensor.h"

namespace cairn {

inline constexpr int kHalvesPerBlock = 8;  // random numbers of 16 bits in a Philox block

// RandomKey::op for the rounding of a parameter, by its place in the graph. Forward ops have smaller numbers.
constexpr uint32_t parameter_stream(size_t index) { return 0x80000000u | static_cast<uint32_t>(index); }

// What is random about an update: every micro-batch of its step would give the same.
constexpr RandomKey update_key(RandomKey key, uint32_t stream) {
  key.micro = 0;
  key.op = stream;
  return key;
}

// Of element kHalvesPerBlock * block + i, from the block's Philox block.
constexpr uint32_t random_half(const PhiloxBlock& bits, int i) {
  const uint32_t word = i < 4 ? (i < 2 ? bits[0] : bits[1]) : (i < 6 ? bits[2] : bits[3]);
  return word >> (i % 2 * 16) & 0xffffu;
}

// random: 16 bits. A number that bfloat16 can hold is not changed, nor are infinities and NaN.
constexpr bf16 round_stochastic(float value, uint32_t random) {
  const uint32_t u = __builtin_bit_cast(uint32_t, value);
  if ((u & 0x7f800000u) == 0x7f800000u) return to_bf16(value);
  return {static_cast<uint16_t>((u + random) >> 16)};
}

}  // namespace cairn
