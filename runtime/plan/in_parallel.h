// Parts of planning that do not depend on one another, on several threads: the same plans, sooner.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <vector>

#include "runtime/base/os/thread.h"

namespace cairn::plan {

namespace detail {
inline thread_local bool inside_parallel = false;  // of calls that run beside others
}

// So many calls may run at once, at least one. One where the caller itself is a call that runs beside others: processors have work.
inline int parallel_calls(int most) {
  return detail::inside_parallel ? 1 : std::min(most, usable_processors());
}

// work(i) for every i < count, on so many threads of which the caller's is one. The first exception by number is thrown when all
// calls have ended.
template <class Work>
void in_parallel(int threads, size_t count, const Work& work) {
  std::vector<std::exception_ptr> thrown(count);
  spread("cairn/plan", static_cast<int64_t>(count), threads, [&](int64_t i) {
    const bool before = detail::inside_parallel;
    detail::inside_parallel = before || threads > 1;
    try {
      work(static_cast<size_t>(i));
    } catch (...) {
      thrown[static_cast<size_t>(i)] = std::current_exception();
    }
    detail::inside_parallel = before;
  });
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

}  // namespace cairn::plan
