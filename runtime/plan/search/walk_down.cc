// Part of the search for one budget: from a plan that is not slow but too high, down to the target.
#include <algorithm>
#include <limits>

#include "runtime/plan/search/search.h"

namespace cairn::plan {
namespace {

constexpr int64_t kParts = 50;  // steps down to a target: such parts of what is alive
constexpr int64_t kStepWork = 2'000'000 / CAIRN_SEARCH_SHARE;  // of each kind of search, per step

}  // namespace

// Whether the archive has a plan within the target in the end. Steps that fail are halved.
bool OneBudget::walk_down(int64_t target) {
  int64_t peak = std::numeric_limits<int64_t>::max(), parts = kParts;
  for (const auto& [bytes, candidate] : s_.archive.plans())
    if (!beyond_cliff(candidate.cost.seconds)) {
      peak = bytes;
      break;
    }
  if (peak == std::numeric_limits<int64_t>::max()) return false;
  while (peak > target) {
    const Candidate from = *s_.archive.within(peak);
    const int64_t next =
        std::max(target, peak - std::max<int64_t>(1, (peak - s_.index.persistent_bytes) / parts));
    Candidate c = from;
    if (s_.local_search.descend(c, next, kStepWork)) s_.local_search.search(c, next, kStepWork);
    const Candidate* found = s_.archive.within(next);
    s_.local_search.anneal(found ? *found : from, next, kStepWork);
    found = s_.archive.within(next);
    if (found)
      peak = next;
    else if ((parts *= 2) > kMostParts)
      return false;
  }
  return s_.archive.within(target) != nullptr;
}

}  // namespace cairn::plan
