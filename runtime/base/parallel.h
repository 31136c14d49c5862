// Data parallelism over the threads of the calling lane. The split depends on (count, grain, thread_count())
// alone, never on how many threads run it, so results depend neither on timing nor on other load.
#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/base/team.h"

namespace cairn {
namespace detail {
extern thread_local constinit int loop_threads;  // at least 1
void run_shares(ThreadTeam::Share share, const void* loop, int shares);
}  // namespace detail

// Shares that a loop started by this thread is split into, at most; 1 unless set, and inside of a loop. Who
// runs them is the thread's team (set_thread_team).
inline int thread_count() { return detail::loop_threads; }
inline void set_thread_count(int threads) { detail::loop_threads = std::max(1, threads); }

// Calls body(begin, end, share) on up to `thread_count()` contiguous shares of [0, count), each a multiple of
// `grain` long (the last excepted); scratch space is indexed by `share`. Runs as one call when one share is enough.
// body must not throw.
template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  const int64_t blocks = (count + grain - 1) / grain;
  const int shares = static_cast<int>(std::min<int64_t>(thread_count(), blocks));
  if (shares <= 1) {
    if (count > 0) body(int64_t{0}, count, 0);
    return;
  }
  struct Loop {
    const int64_t count, grain, blocks, shares;
    const Body& body;
  } const loop{count, grain, blocks, shares, body};
  detail::run_shares(
      [](const void* given, int share) {
        const Loop& l = *static_cast<const Loop*>(given);
        const int64_t begin = std::min(l.count, l.blocks * share / l.shares * l.grain);
        const int64_t end = std::min(l.count, l.blocks * (share + 1) / l.shares * l.grain);
        if (begin < end) l.body(begin, end, share);
      },
      &loop, shares);
}

}  // namespace cairn
