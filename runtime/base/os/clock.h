// Seconds of a clock that nobody sets, since a point in the past that is the same for the whole process.
#pragma once
#include <chrono>

namespace cairn {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace cairn
