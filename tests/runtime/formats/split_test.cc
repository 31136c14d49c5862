// A float32 in two halves: bit by bit the number, whose upper half is the number rounded.
#include "runtime/formats/split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace cairn {
namespace {

uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Every upper half with lower ones around 0, the tie and the end.
template <class Body>
void for_bits(const Body& body) {
  for (uint32_t upper = 0; upper < 65536; ++upper)
    for (const uint32_t lower : {0u, 1u, 0x1234u, 0x7fffu, 0x8000u, 0x8001u, 0xfedcu, 0xffffu})
      body(upper << 16 | lower);
}

TEST(Split, BothHalvesAreTheNumber) {
  int64_t wrong = 0;
  for_bits([&](uint32_t u) {
    const float value = float_of(u);
    if (std::isnan(value)) return;
    wrong += bits_of(join_halves(high_half(value), low_half(value))) != u;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Split, TheUpperHalfIsTheNumberRoundedToNearest) {
  int64_t wrong = 0;
  for_bits([&](uint32_t u) {
    const float value = float_of(u);
    if (std::isnan(value)) return;
    const bf16 high = high_half(value);
    if ((u & 0xffffu) == 0x8000u)  // a tie: away from zero
      wrong += high.bits != (u >> 16) + 1;
    else
      wrong += high.bits != to_bf16(value).bits;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Split, NanStaysNanInBoth) {
  int64_t wrong = 0;
  for_bits([&](uint32_t u) {
    const float value = float_of(u);
    if (!std::isnan(value)) return;
    const bf16 high = high_half(value);
    wrong += !std::isnan(to_float(high)) || bits_of(join_halves(high, low_half(value))) != (u | 0x400000u);
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cairn
