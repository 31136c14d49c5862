// Part of local search: lower peaks where no structure says which values to give up.
#include <algorithm>

#include "runtime/plan/local_search/local_search.h"

namespace cairn::plan {
namespace {

// Aims below the lowest plan by such a part of its peak: the first, and the last one that is worth a try.
constexpr int64_t kFirstPart = 20, kLastPart = 160;
constexpr int64_t kGained = 8;  // less than such a part of that: the next aim is nearer
constexpr int kMaxAims = 24;

}  // namespace

void LocalSearch::anneal_down(int64_t target, int64_t work) {
  int64_t part = kFirstPart;
  for (int aims = 0; aims < kMaxAims && part <= kLastPart; ++aims) {
    const Candidate lowest = archive_.plans().begin()->second;
    const int64_t peak = lowest.cost.peak_bytes, less = peak / part;
    if (peak <= target) return;
    anneal(lowest, std::max(target, peak - less), work);
    if (archive_.plans().begin()->first > peak - less / kGained) part *= 2;
  }
}

}  // namespace cairn::plan
