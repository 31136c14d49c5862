#include "runtime/plan/pricing/rules.h"

#include <algorithm>

#include "runtime/base/checked.h"

namespace cairn::plan {

Rules::Rules(const Problem& p, const Index& index, const Intervals& intervals)
    : policy(p.values.size(), Policy::kPlannerDecides),
      free(intervals.all.size(), 0),
      remade(free),
      sent(free),
      across(p.values.size(), -1),
      base(intervals.keep_all(p)) {
  const auto inside = [&](int32_t region, int32_t ancestor) {
    while (region > ancestor) region = p.regions[region].parent;
    return region == ancestor;
  };
  std::vector<int64_t> room;
  for (const Link& link : p.links) room.push_back(link.capacity_bytes);
  for (int32_t i = 0; i < static_cast<int32_t>(p.ops.size()); ++i)
    for (int32_t v : index.outputs[i]) {
      const int32_t interval = across[v] = intervals.across(p, index, v);
      const int32_t scope = i < p.backward_begin ? index.scope[i] : -1;
      if (scope < 0) {
        for (int32_t g = intervals.first[v]; g < intervals.first[v + 1]; ++g) {
          const Intervals::Interval& at = intervals.all[g];
          const bool apart = at.end - at.begin > 1;
          remade[g] = apart && p.ops[i].recomputable;
          sent[g] = apart && at.end != kNever && p.values[v].bytes > 0 && !p.links.empty();
          free[g] = remade[g] || sent[g];
        }
        continue;
      }
      const Region& region = p.regions[scope];
      policy[v] = region.policy;
      // The value is kept for ops that recompute from it, too. This costs nothing if there are none.
      if (region.policy == Policy::kKeep) base[intervals.first[v + 1] - 1] = kKeepIt;
      if (region.policy == Policy::kRecompute && p.ops[i].recomputable) {
        const auto readers = index.readers[v];
        const bool output = std::any_of(readers.begin(), readers.end(), [&](int32_t reader) {
          return reader < p.backward_begin && !inside(p.ops[reader].region, scope);
        });
        if (!output && interval >= 0) base[interval] = p.backward_begin;
      } else if (region.policy == Policy::kOffload && p.values[v].bytes >= kPageBytes && interval >= 0) {
        const int32_t tier = std::max(0, region.offload_tier);
        if (p.values[v].bytes > room[tier]) continue;
        room[tier] -= p.values[v].bytes;
        base[interval] = over_link(tier);
      }
    }
}

}  // namespace cairn::plan
