// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011). A number is a pure function of key and counter, so recomputing needs no saved state.
// constexpr, so that GPU kernels can call it, too.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace cairn {

// What names one random tensor of a run.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t micro = 0;
  uint32_t op = 0;
};

using PhiloxBlock = std::array<uint32_t, 4>;

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u, kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr int kPhiloxRounds = 10;

constexpr PhiloxBlock philox_round(const PhiloxBlock& counter, uint32_t key0, uint32_t key1) {
  const uint64_t p0 = uint64_t{kPhiloxMultiplier0} * counter[0],
                 p1 = uint64_t{kPhiloxMultiplier1} * counter[2];
  return {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(p0)};
}
// Added to the key from round to round.
inline constexpr uint32_t kPhiloxStep0 = 0x9E3779B9u, kPhiloxStep1 = 0xBB67AE85u;

constexpr PhiloxBlock philox(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < kPhiloxRounds; ++round, key0 += kPhiloxStep0, key1 += kPhiloxStep1)
    counter = philox_round(counter, key0, key1);
  return counter;
}
// Of several counters, side by side and in place.
template <std::size_t kCount>
constexpr void philox(PhiloxBlock (&counters)[kCount], uint32_t key0, uint32_t key1) {
  for (int round = 0; round < kPhiloxRounds; ++round, key0 += kPhiloxStep0, key1 += kPhiloxStep1)
    for (PhiloxBlock& counter : counters) counter = philox_round(counter, key0, key1);
}

// Four 32-bit numbers for elements 4*block .. 4*block+3 of the tensor named by `key`. The 128-bit counter is
// (block low; block high xor micro, shifted; step, its halves mixed; op); the seed is the Philox key.
constexpr PhiloxBlock random_counter(const RandomKey& key, uint64_t block) {
  return {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32) ^ (key.micro << 16),
          static_cast<uint32_t>(key.step) ^ static_cast<uint32_t>(key.step >> 32) * 0x9E3779B9u, key.op};
}
constexpr PhiloxBlock random_block(const RandomKey& key, uint64_t block) {
  return philox(random_counter(key, block), static_cast<uint32_t>(key.seed),
                static_cast<uint32_t>(key.seed >> 32));
}

// Uniform in [0, 1) with 24 bits.
constexpr float uniform(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace cairn
