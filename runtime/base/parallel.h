// Data parallelism over the threads of the calling lane. OpenMP underneath, because oneDNN shares its pool.
// The split is static: it depends on (count, threads) alone, so results do not depend on timing.
#pragma once
#include <algorithm>
#include <cstdint>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace cairn {

// Threads a parallel loop started by this thread uses. Set per lane; touches nothing global.
inline int thread_count() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}
inline void set_thread_count([[maybe_unused]] int threads) {
#ifdef _OPENMP
  omp_set_num_threads(std::max(1, threads));
#endif
}

// Calls body(begin, end, thread) on `thread_count()` contiguous shares of [0, count), each a multiple of
// `grain` long (the last excepted). Runs serially when one share is enough. body must not throw.
template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  const int64_t blocks = (count + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<int64_t>(thread_count(), blocks));
  if (threads <= 1) {
    if (count > 0) body(int64_t{0}, count, 0);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
  {
    const int64_t t = omp_get_thread_num(), n = omp_get_num_threads();
    const int64_t begin = std::min(count, blocks * t / n * grain);
    const int64_t end = std::min(count, blocks * (t + 1) / n * grain);
    if (begin < end) body(begin, end, static_cast<int>(t));
  }
#endif
}

}  // namespace cairn
