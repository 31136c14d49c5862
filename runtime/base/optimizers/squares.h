// The order in which a GPU adds up the squares of a tensor, which is also the processor's where it does so for one: chunks,
// each summed by one block of threads, and then the chunks' sums.
#pragma once
#include <algorithm>
#include <cstdint>

namespace cairn::kernels {

inline constexpr int kSquaresThreads = 256;  // of a block

// Elements of a chunk, a multiple of 8; the last one may have fewer.
constexpr int64_t squares_chunk(int64_t count) {
  constexpr int64_t kLeast = 8192, kMostParts = 1024;
  return (std::max(kLeast, (count + kMostParts - 1) / kMostParts) + 7) / 8 * 8;
}

}  // namespace cairn::kernels
