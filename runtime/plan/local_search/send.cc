// Plans whose peak is a little too high: their peak is lowered to what the largest ops need, by offloading instead of
// recomputing.
#include <algorithm>

#include "runtime/plan/local_search/local_search.h"

namespace cairn::plan {
namespace {

constexpr int kMostSent = 2000;
constexpr double kLeastCost = .05;  // share of its seconds that a copy costs even if hidden

}  // namespace

// Whether the interval's value may be offloaded and is not yet.
bool LocalSearch::could_send(const Candidate& c, int32_t interval) const {
  return interval >= 0 && rules_.free[interval] && rules_.sent[interval] && c.retention_points[interval] >= 0;
}

// Seconds of the value's copies. hidden: minus the seconds between its two uses, during which copies cost nothing.
double LocalSearch::seconds_to_send(int32_t interval, int32_t link, bool hidden) const {
  const Intervals::Interval& at = intervals_.all[interval];
  const Link& l = p_.links[link];
  const auto bytes = static_cast<double>(p_.values[at.value].bytes);
  const double copies =
      2 * l.latency_seconds + bytes / l.out_bytes_per_second + bytes / l.in_bytes_per_second;
  double idle = 0;
  const int32_t end = std::min(at.end, static_cast<int32_t>(p_.ops.size()));
  for (int32_t j = at.begin + 1; hidden && j < end && idle < copies; ++j) idle += p_.ops[j].seconds;
  return std::max(copies - idle, copies * kLeastCost);
}

// Offloads a value so that the fullest item becomes lower, at once or together with the next value. False if no value
// is left.
bool LocalSearch::send_at_peak(Candidate& c, int64_t budget, int32_t link, bool hidden) {
  const auto item = static_cast<int32_t>(std::max_element(sequence_.live.begin(), sequence_.live.end()) -
                                         sequence_.live.begin());
  const int32_t here = sequence_.anchor[item];
  std::vector<int32_t> intervals, anchors = {here};  // of values that are alive but not used by the item's op
  for (const Residency& residency : sequence_.residencies) {
    if (residency.begin >= item || residency.end <= item) continue;
    anchors.push_back(sequence_.anchor[residency.begin]);
    if (here > 0) intervals.push_back(intervals_.at(residency.value, here - 1));
  }
  bool any = false;
  for (int64_t over = sequence_.live[item] - budget; over > 0;) {
    int32_t best = -1;
    double least = 0;
    for (const int32_t g : intervals) {
      if (!could_send(c, g)) continue;
      const int64_t freed = std::max<int64_t>(1, std::min(over, p_.values[intervals_.all[g].value].bytes));
      const double price = seconds_to_send(g, link, hidden) / static_cast<double>(freed);
      if (best >= 0 && price >= least) continue;
      best = g;
      least = price;
    }
    if (best < 0) break;
    c.retention_points[best] = over_link(link);
    over -= p_.values[intervals_.all[best].value].bytes;
    any = true;
  }
  for (size_t k = 0; k < anchors.size() && !any; ++k)
    for (const int32_t v : index_.inputs[anchors[k]]) {
      const int32_t g = anchors[k] > 0 ? intervals_.at(v, anchors[k] - 1) : -1;
      if (!could_send(c, g)) continue;
      c.retention_points[g] = over_link(link);
      any = true;
    }
  return any;
}

void LocalSearch::send_around_full(Candidate& c, int64_t budget, int32_t link, bool hidden) {
  const RetentionPoints before = c.retention_points;
  for (int round = 0;; ++round) {
    c.cost = evaluate_(c.retention_points, c.pace, sequence_);
    if (!c.cost.valid) return;
    if (c.cost.peak_bytes <= budget) break;
    if (round == kMostSent || !send_at_peak(c, budget, link, hidden)) return;
  }
  note(c);
  for (size_t g = 0; g < before.size(); ++g)
    if (c.retention_points[g] != before[g]) hold_from(c, static_cast<int32_t>(g), before[g], budget);
}

}  // namespace cairn::plan
