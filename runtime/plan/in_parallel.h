// Parts of a search that do not depend on one another, on several threads: the same plans, sooner.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <vector>

#include "runtime/base/os/thread.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {

inline constexpr int kMostThreads = 4;

// work(i) for every i < count. With few ops on the caller's thread alone, as another one takes as long to begin. The first exception
// by number is thrown when all calls have ended.
template <class Work>
void in_parallel(size_t ops, size_t count, const Work& work) {
  const int threads = ops > kSmallProblem ? std::min(kMostThreads, usable_processors()) : 1;
  std::vector<std::exception_ptr> thrown(count);
  spread("cairn/plan", static_cast<int64_t>(count), threads, [&](int64_t i) {
    try {
      work(static_cast<size_t>(i));
    } catch (...) {
      thrown[static_cast<size_t>(i)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

}  // namespace cairn::plan
