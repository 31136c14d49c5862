// Runs independent parts of planning on several threads. The plans are the same with any number of threads. Callers
// pass the number on: code that runs several searches at once gives each of them one thread.
#pragma once
#include <cstdint>
#include <exception>
#include <vector>

#include "runtime/base/os/thread.h"

namespace cairn::plan {

inline constexpr int kMostThreads = 4;  // for one search, if there are as many processors

// Calls work(i) for every i < count on up to `threads` threads, the caller's included. When all calls have ended,
// throws the exception of the lowest i.
template <class Work>
void in_parallel(int threads, size_t count, const Work& work) {
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
