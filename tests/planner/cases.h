// How many cases a proof by test looks at: few in the ordinary run, as many as the environment asks for in a
// long one. A failure names its seed, so that one case can be run alone.
#pragma once
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace cairn::plan {

struct Cases {
  uint32_t first, count;
};

// CAIRN_PLANNER_CASES problems from seed CAIRN_PLANNER_SEED on; `few` from 1 on without these.
inline Cases cases(uint32_t few) {
  const auto number = [](const char* name, uint32_t otherwise) {
    const char* text = std::getenv(name);
    return text && *text ? static_cast<uint32_t>(std::stoul(text)) : otherwise;
  };
  return {number("CAIRN_PLANNER_SEED", 1), number("CAIRN_PLANNER_CASES", few)};
}

// Of this process so far: what limits of time are held against, as others may use the machine.
inline double processor_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Long runs tell how far they are.
inline void say_progress(uint32_t done, uint32_t count) {
  if (count < 10000 || done == 0 || done % 1000 != 0) return;
  std::printf("%u of %u\n", done, count);
  std::fflush(stdout);
}

}  // namespace cairn::plan
