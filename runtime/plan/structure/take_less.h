// The inner loop of tables over rooms: takes a way of two parts at all rooms at which it is faster.
#pragma once
#include <cstdint>
#include <cstring>

namespace cairn::plan {

// Takes the way where `seconds` plus the two parts is less than the best so far. Rooms are compared as vectors:
// compilers do not vectorise the loop by themselves in every place where it is inlined.
inline void take_less(const float* later, const float* earlier, float seconds, int32_t split, int32_t count,
                      float* best, int32_t* splits) {
  constexpr int32_t kTogether = 4;
  using Floats = float __attribute__((vector_size(kTogether * sizeof(float))));
  using Ints = int32_t __attribute__((vector_size(kTogether * sizeof(int32_t))));
  int32_t m = 0;
  for (; m + kTogether <= count; m += kTogether) {
    Floats sum, other, before;
    Ints ways;
    std::memcpy(&sum, later + m, sizeof sum);
    std::memcpy(&other, earlier + m, sizeof other);
    std::memcpy(&before, best + m, sizeof before);
    std::memcpy(&ways, splits + m, sizeof ways);
    sum = seconds + sum + other;
    const Ints less = sum < before;
    ways = (less & split) | (~less & ways);
    before = less ? sum : before;
    std::memcpy(best + m, &before, sizeof before);
    std::memcpy(splits + m, &ways, sizeof ways);
  }
  for (; m < count; ++m) {
    const float sum = seconds + later[m] + earlier[m];
    if (sum >= best[m]) continue;
    best[m] = sum;
    splits[m] = split;
  }
}

}  // namespace cairn::plan
