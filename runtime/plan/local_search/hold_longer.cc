// Values that are recomputed for several ops although there is room to keep them between these ops.
#include <algorithm>
#include <limits>

#include "runtime/plan/local_search/local_search.h"

namespace cairn::plan {
namespace {

constexpr double kStale =
    .02;  // of a plan's seconds: once so much is saved, the list of recomputed values is rebuilt
constexpr double kRemembered = .05;  // plans that differ by so much are archived: the arena of one may fit

}  // namespace

// All runs for one op form a group, and that op is their anchor. Keeping a value saves about the runs of the group up
// to the one that makes the value.
std::vector<LocalSearch::Again> LocalSearch::made_again(const Candidate& c, int64_t budget) {
  evaluate_(c.retention_points, c.pace, sequence_);
  std::vector<int64_t> spare(p_.ops.size(), 0);  // per op: bytes free while it runs for itself
  for (size_t i = 0; i < sequence_.ops.size(); ++i)
    if (sequence_.ops[i] == sequence_.anchor[i]) spare[sequence_.ops[i]] = budget - sequence_.live[i];
  std::vector<int32_t> at(intervals_.all.size(), -1);
  std::vector<Again> found;
  double before = 0;
  for (size_t i = 0; i < sequence_.ops.size(); ++i) {
    const int32_t op = sequence_.ops[i], anchor = sequence_.anchor[i];
    if (i == 0 || sequence_.anchor[i - 1] != anchor) before = 0;
    before += p_.ops[op].seconds;
    if (op == anchor) continue;
    for (int32_t v : index_.outputs[op]) {
      const int32_t g = p_.values[v].bytes > 0 ? intervals_.at(v, anchor) : -1;
      if (g < 0 || !rules_.free[g] || c.retention_points[g] < 0 || held_from(c.retention_points[g]) <= anchor)
        continue;
      if (at[g] < 0) {
        at[g] = static_cast<int32_t>(found.size());
        found.push_back({g, {}, 0});
      }
      Again& again = found[static_cast<size_t>(at[g])];
      again.anchors.push_back(anchor);
      again.estimate += before / static_cast<double>(p_.values[v].bytes);
    }
  }
  // A value cannot be kept past an op during which it does not fit next to the op's own values.
  for (Again& again : found) {
    const Intervals::Interval& interval = intervals_.all[again.interval];
    int32_t full = std::min(interval.end, static_cast<int32_t>(p_.ops.size())) - 1;
    while (full >= again.anchors.front() && spare[full] >= p_.values[interval.value].bytes) --full;
    again.anchors.erase(again.anchors.begin(),
                        std::upper_bound(again.anchors.begin(), again.anchors.end(), full));
  }
  std::erase_if(found, [](const Again& again) { return again.anchors.empty(); });
  std::stable_sort(found.begin(), found.end(),
                   [](const Again& a, const Again& b) { return a.estimate > b.estimate; });
  return found;
}

bool LocalSearch::hold_from(Candidate& c, int32_t interval, int32_t op, int64_t budget) {
  const int32_t before = c.retention_points[interval];
  c.retention_points[interval] = op;
  const auto good = [&](double seconds, int64_t peak) { return peak <= budget && seconds < c.cost.seconds; };
  const RetentionPricer::Price price = evaluate_.price(c.retention_points, c.cost.seconds);
  if (price.valid && good(price.seconds, price.peak_bytes)) {
    const Cost cost = complete(c, price);
    if (good(cost.seconds, cost.peak_bytes)) {
      c.cost = cost;
      note(c);
      return true;
    }
  }
  c.retention_points[interval] = before;
  return false;
}

void LocalSearch::hold_longer(Candidate& c, int64_t budget, int64_t work) {
  const int64_t until = evaluate_.work() + work;
  double remembered = std::numeric_limits<double>::infinity();  // the seconds of the plan archived last
  for (bool better = true; better && evaluate_.work() < until;) {
    better = false;
    const double start = c.cost.seconds;
    if (start < (1 - kRemembered) * remembered) {
      archive_.pin(c.retention_points, c.pace, c.cost);
      remembered = start;
    }
    for (const Again& again : made_again(c, budget)) {
      if (evaluate_.work() > until || c.cost.seconds < (1 - kStale) * start) break;
      // Keeping from a later op on fits more often, and saves less.
      size_t low = 0, high = again.anchors.size();
      for (size_t middle = 0; low < high; middle = (low + high) / 2) {
        if (hold_from(c, again.interval, again.anchors[middle], budget)) {
          better = true;
          high = middle;
        } else {
          low = middle + 1;
        }
      }
    }
  }
}

}  // namespace cairn::plan
