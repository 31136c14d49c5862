#include "runtime/base/random.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

// The vectors that Salmon et al. publish with their code.
static_assert(philox({0, 0, 0, 0}, 0, 0) == PhiloxBlock{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
static_assert(philox({~0u, ~0u, ~0u, ~0u}, ~0u, ~0u) ==
              PhiloxBlock{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
static_assert(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, 0xa4093822u, 0x299f31d0u) ==
              PhiloxBlock{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});

TEST(Random, CountersSideBySideGiveWhatEachGivesAlone) {
  const RandomKey key{0x123456789abcdefull, 7, 3, 11};
  const auto low = static_cast<uint32_t>(key.seed), high = static_cast<uint32_t>(key.seed >> 32);
  PhiloxBlock blocks[3];
  for (uint64_t b = 0; b < 3; ++b) blocks[b] = random_counter(key, b << 33 | b);
  philox(blocks, low, high);
  for (uint64_t b = 0; b < 3; ++b) EXPECT_EQ(blocks[b], random_block(key, b << 33 | b)) << b;
}

}  // namespace
}  // namespace cairn
