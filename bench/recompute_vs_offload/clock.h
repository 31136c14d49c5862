// Clocks, and medians of what they say.
#pragma once
#include <algorithm>
#include <ctime>
#include <vector>

#include "runtime/base/os/clock.h"

namespace cairn::bench {

// Of a computation: with one thread its processor time, which others on the machine disturb less; else the
// wall's.
inline double compute_seconds(int threads) {
  if (threads != 1) return now();
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

inline double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace cairn::bench
