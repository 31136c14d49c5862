#include <algorithm>
#include <bit>

#include "runtime/data/data.h"

namespace cairn::data {
namespace {

// splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): its
// finaliser.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

}  // namespace

int64_t permute(uint64_t seed, uint64_t epoch, int64_t index, int64_t count) {
  require(count >= 1 && index >= 0 && index < count, Code::kInvalidArgument, "index ", index,
          " is outside 0..", count - 1);
  // A Feistel network permutes 2^(2 half) >= count numbers; walking the cycle until a number below count
  // appears restricts it to a permutation of 0..count-1 (Black, Rogaway, "Ciphers with arbitrary finite
  // domains", 2002). The domain is at most 4 * count, so a walk takes fewer than four steps on average.
  const int half = std::max(1, (static_cast<int>(std::bit_width(static_cast<uint64_t>(count - 1))) + 1) / 2);
  const uint64_t mask = (uint64_t{1} << half) - 1;
  const uint64_t key = mix(mix(seed) ^ epoch);
  auto x = static_cast<uint64_t>(index);
  do {
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint64_t next = left ^ (mix(key ^ mix(right ^ round << 56)) & mask);
      left = right;
      right = next;
    }
    x = left << half | right;
  } while (x >= static_cast<uint64_t>(count));
  return static_cast<int64_t>(x);
}

void Dataset::window(uint64_t seed, uint64_t epoch, int64_t index, int32_t* inputs, int32_t* targets) const {
  std::vector<int32_t> tokens(static_cast<size_t>(length_) + 1);
  raw(permute(seed, epoch, index, windows()), epoch, tokens.data());
  std::copy_n(tokens.begin(), length_, inputs);
  std::copy_n(tokens.begin() + 1, length_, targets);
}

int64_t Dataset::batch(uint64_t seed, uint64_t index, int64_t batch, int32_t* inputs, int32_t* targets,
                       int32_t ignore) const {
  require(batch >= 1 && batch <= int64_t{1} << 30, Code::kInvalidArgument, "a batch of ", batch, " rows");
  const auto per_epoch = static_cast<uint64_t>(batches_per_epoch(batch));
  const uint64_t epoch = index / per_epoch;
  const int64_t first = static_cast<int64_t>(index % per_epoch) * batch;
  const int64_t rows = std::min(batch, windows() - first);
  for (int64_t row = 0; row < rows; ++row)
    window(seed, epoch, first + row, inputs + row * length_, targets + row * length_);
  std::fill_n(inputs + rows * length_, (batch - rows) * length_, 0);
  std::fill_n(targets + rows * length_, (batch - rows) * length_, ignore);
  return rows;
}

}  // namespace cairn::data
