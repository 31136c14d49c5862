// The best of all plans that keep or make again each saved value, by trying every one of them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "runtime/plan/explain.h"
#include "runtime/plan/layout/layout.h"
#include "runtime/plan/pricing/evaluate.h"
#include "runtime/plan/pricing/rules.h"

namespace cairn::plan {

struct BrutePoint {
  int64_t arena_bytes;
  double seconds;
};

// The intervals around the beginning of backward whose retention points the planner may choose.
inline std::vector<int32_t> free_across(const Problem& p, const Rules& rules) {
  std::vector<int32_t> free;
  for (size_t v = 0; v < p.values.size(); ++v)
    if (const int32_t interval = rules.across[v];
        interval >= 0 && rules.free[interval] && p.values[v].bytes > 0)
      free.push_back(interval);
  return free;
}

// Plans that no other of them beats in both arena and seconds, by falling seconds: laid out, so that each
// arena is one in which its plan runs. Every budget's best is the last point whose arena fits, so a planner
// that is monotone in the budget needs to be compared at these arenas only. 2^|free| plans.
inline std::vector<BrutePoint> brute_force(const Problem& p, const Index& index, const Intervals& intervals,
                                           const Rules& rules, const std::vector<int32_t>& free) {
  Evaluator evaluate(p, index, intervals);
  Sequence sequence;
  const auto retention_points = [&](uint32_t subset) {
    RetentionPoints t = rules.base;
    for (size_t k = 0; k < free.size(); ++k)
      if (subset >> k & 1) t[free[k]] = p.backward_begin;
    return t;
  };
  struct Priced {
    uint32_t subset;
    Cost cost;
  };
  std::vector<Priced> plans;
  for (uint32_t subset = 0; subset < 1u << free.size(); ++subset)
    if (const Cost cost = evaluate(retention_points(subset), {}, sequence); cost.valid)
      plans.push_back({subset, cost});
  std::sort(plans.begin(), plans.end(), [](const Priced& a, const Priced& b) {
    return a.cost.seconds != b.cost.seconds ? a.cost.seconds < b.cost.seconds
                                            : a.cost.peak_bytes < b.cost.peak_bytes;
  });
  std::vector<BrutePoint> best;
  for (const Priced& priced : plans) {
    // An arena is never lower than its peak, so most plans need no layout.
    if (!best.empty() && priced.cost.peak_bytes >= best.back().arena_bytes) continue;
    Schedule schedule = evaluate.schedule(retention_points(priced.subset), {}, sequence);
    Plan plan;
    plan.steps = std::move(schedule.steps);
    assign_offsets(p, index, plan, std::max<int64_t>(1, schedule.peak_bytes));
    if (!best.empty() && plan.arena_bytes >= best.back().arena_bytes) continue;
    if (!best.empty() && best.back().seconds == priced.cost.seconds) best.pop_back();
    best.push_back({plan.arena_bytes, priced.cost.seconds});
  }
  std::reverse(best.begin(), best.end());
  return best;  // by rising arena
}

}  // namespace cairn::plan
