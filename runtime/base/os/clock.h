// Seconds of a monotonic clock, since a point in the past that is the same for all of the process.
#pragma once
#include <chrono>

namespace cairn {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace cairn
