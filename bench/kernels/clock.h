// Seconds for timing kernels.
#pragma once
#include <chrono>
#include <ctime>

#include "runtime/base/parallel.h"

namespace cairn::bench {

// With one thread its processor time, which others on the machine disturb less; else the time on the wall.
inline double now() {
  if (thread_count() == 1) {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace cairn::bench
