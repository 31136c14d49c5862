// What codecs of blocks have in common. All of it is constexpr, so that kernels for GPUs can use it.
#pragma once
#include <cstdint>

#include "runtime/formats/half.h"

namespace cairn::formats {

inline constexpr float kLargestFloat = 3.4028234663852886e38f;

constexpr float magnitude(float x) { return x < 0 ? -x : x; }

// The largest magnitude of `count` numbers. False: one of them is not finite.
constexpr bool find_largest(const float* from, int64_t count, float& largest) {
  largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float now = magnitude(from[i]);
    if (!(now <= kLargestFloat)) return false;
    largest = now > largest ? now : largest;
  }
  return true;
}

// The place of the number with the largest magnitude, the first one of several. False: one is not finite.
constexpr bool find_extreme(const float* from, int64_t count, int64_t& place) {
  place = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!(magnitude(from[i]) <= kLargestFloat)) return false;
    if (magnitude(from[i]) > magnitude(from[place])) place = i;
  }
  return true;
}

// A whole number from `least` to `most`: the one that is nearest to x, ties to even.
constexpr int nearest_whole(float x, int least, int most) {
  constexpr float kShift = 0x1.8p23f;  // here floats are whole numbers
  if (!(x > static_cast<float>(least))) return least;
  return x < static_cast<float>(most) ? static_cast<int>(x + kShift - kShift) : most;
}

// a * b + c, each operation rounded. Compilers for GPUs would make it one operation with one rounding.
template <class F>
constexpr F product_plus(F a, F b, F c) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(__fmul_rn(a, b), c);
#else
  return a * b + c;
#endif
}

// 4 bits of a byte: the lower ones, or the upper ones.
constexpr int nibble(uint8_t pair, bool upper) { return upper ? pair >> 4 : pair & 15; }

}  // namespace cairn::formats
