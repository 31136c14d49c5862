// Stochastic rounding: right in the mean, exact where there is nothing to round, and by bits of the element alone.
#include "runtime/base/optimizers/stochastic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace cairn {
namespace {

uint32_t half_of(const RandomKey& key, int64_t element) {
  return random_half(random_block(key, static_cast<uint64_t>(element / kHalvesPerBlock)),
                     static_cast<int>(element % kHalvesPerBlock));
}

// Between two neighbours of bfloat16 every part of the way is met as often as it should be.
TEST(Stochastic, TheMeanIsRight) {
  constexpr int kDraws = 1 << 16;
  for (const float value :
       {1.0f + 0x1p-9f, 1.0f + 0x1.8p-8f, -3.1415927f, 1e-20f, -0x1.234568p-130f, 123456.7f}) {
    double sum = 0;
    std::set<uint16_t> seen;
    for (int i = 0; i < kDraws; ++i) {
      const bf16 rounded = round_stochastic(value, half_of({1, 2, 0, parameter_stream(0)}, i));
      seen.insert(rounded.bits);
      sum += static_cast<double>(to_float(rounded));
    }
    ASSERT_EQ(seen.size(), 2u) << value;
    const double low = static_cast<double>(to_float(bf16{*seen.begin()})),
                 high = static_cast<double>(to_float(bf16{*seen.rbegin()}));
    EXPECT_EQ(*seen.begin() + 1, *seen.rbegin()) << value;
    // Six standard deviations of so many draws.
    EXPECT_NEAR(sum / kDraws, static_cast<double>(value), 3 * std::fabs(high - low) / std::sqrt(kDraws))
        << value;
  }
}

TEST(Stochastic, EveryRandomNumberIsMetOnce) {
  const float value = 1.0f + 0x1p-9f;  // a quarter of the way
  int up = 0;
  for (uint32_t random = 0; random < 65536; ++random) up += to_float(round_stochastic(value, random)) > value;
  EXPECT_EQ(up, 65536 / 4);
}

TEST(Stochastic, WhatBfloat16HoldsStaysAsItIs) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const bf16 value{static_cast<uint16_t>(bits)};
    const float wide = to_float(value);
    for (const uint32_t random : {0u, 1u, 0x8000u, 0xffffu}) {
      const bf16 rounded = round_stochastic(wide, random);
      if (std::isnan(wide))
        EXPECT_TRUE(std::isnan(to_float(rounded)));
      else
        EXPECT_EQ(rounded.bits, value.bits);
    }
  }
}

// A payload in the lower half alone must not become an infinity.
TEST(Stochastic, NanStaysNan) {
  for (const uint32_t bits : {0x7f800001u, 0xff80ffffu, 0x7fffffffu})
    for (const uint32_t random : {0u, 0xffffu})
      EXPECT_TRUE(std::isnan(to_float(round_stochastic(__builtin_bit_cast(float, bits), random))));
}

TEST(Stochastic, BitsFollowFromSeedStepStreamAndElement) {
  const RandomKey key{7, 3, 0, parameter_stream(1)};
  EXPECT_EQ(update_key({7, 3, 5, 99}, parameter_stream(1)).micro, 0u);
  EXPECT_EQ(half_of(update_key({7, 3, 5, 99}, parameter_stream(1)), 11), half_of(key, 11));
  // Of 4096 numbers of 16 bits in another stream about one in 65536 is the same at the same place.
  for (const RandomKey& other :
       {RandomKey{8, 3, 0, parameter_stream(1)}, RandomKey{7, 4, 0, parameter_stream(1)},
        RandomKey{7, 3, 0, parameter_stream(2)}, RandomKey{7, 3, 0, 1}}) {
    int same = 0;
    for (int64_t i = 0; i < 4096; ++i) same += half_of(key, i) == half_of(other, i);
    EXPECT_LE(same, 4);
  }
  double sum = 0;
  for (int64_t i = 0; i < 65536; ++i) sum += half_of(key, i);
  EXPECT_NEAR(sum / 65536, 32767.5, 6 * 65536 / std::sqrt(12.0 * 65536));
}

}  // namespace
}  // namespace cairn
