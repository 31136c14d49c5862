#include "runtime/plan/search/search.h"

#include <algorithm>

#include "runtime/plan/layout/layout.h"

namespace cairn::plan {
namespace {

std::vector<Pace> paces_of(const Problem& p) {
  if (p.links.empty()) return {{}};
  int64_t largest = 0;
  for (const Value& v : p.values)
    if (!v.persistent) largest = std::max(largest, v.bytes);
  return {{}, {4 * std::min(largest, std::numeric_limits<int64_t>::max() / 8)}, {0}};
}

}  // namespace

Search::Search(const Problem& problem, bool arenas_follow_peaks)
    : p(problem),
      index(p),
      intervals(p, index),
      rules(p, index, intervals),
      evaluate(p, index, intervals),
      local_search(p, index, intervals, rules, evaluate, archive),
      arenas_follow_peaks_(arenas_follow_peaks),
      paces_(paces_of(p)) {}

void Search::restart() {
  archive = {};
  local_search.restart();
  for (const Pace& pace : paces_) try_retention(rules.base, pace);
}

bool Search::try_retention(const RetentionPoints& t, Pace pace) {
  const Cost cost = evaluate(t, pace, sequence);
  if (cost.valid) archive.add(t, pace, cost);
  return cost.valid;
}

RetentionPoints Search::retention_of(const OptionSets& sets, const Chosen& chosen) const {
  RetentionPoints t = rules.base;
  for (size_t stage = 0; stage < chosen.options.size(); ++stage) sets.apply(stage, *chosen.options[stage], t);
  return t;
}

Plan Search::lay_out(const Candidate& c, int64_t budget) {
  Schedule s = evaluate.schedule(c.retention_points, c.pace, sequence);
  Plan plan;
  plan.steps = std::move(s.steps);
  plan.device_peak_bytes = s.peak_bytes;
  plan.tier_peak_bytes = std::move(s.tier_peak_bytes);
  plan.predicted_seconds = s.seconds;
  const int64_t capacity = arenas_follow_peaks_ ? c.cost.peak_bytes : budget;
  assign_offsets(p, index, plan, capacity == std::numeric_limits<int64_t>::max() ? 0 : capacity);
  return plan;
}

std::optional<Fit> Search::fastest_within(int64_t peak, int64_t budget, int attempts, int64_t* first_over) {
  if (first_over) *first_over = 0;
  bool first = true;
  for (const Candidate* candidate : archive.by_seconds(peak)) {
    if (attempts-- == 0) break;
    Fit fit{lay_out(*candidate, budget), *candidate};
    if (first_over && first) *first_over = std::max<int64_t>(0, fit.plan.arena_bytes - budget);
    first = false;
    if (fit.plan.arena_bytes <= budget) return fit;
  }
  return {};
}

std::optional<Fit> Search::lowest() {
  std::vector<const Candidate*> list = archive.by_seconds(std::numeric_limits<int64_t>::max());
  std::stable_sort(list.begin(), list.end(), [](const Candidate* a, const Candidate* b) {
    return a->cost.peak_bytes < b->cost.peak_bytes;
  });
  std::optional<Fit> best;
  for (const Candidate* candidate : list) {
    if (best && candidate->cost.peak_bytes >= best->plan.arena_bytes) break;  // no arena is below its peak
    Fit fit{lay_out(*candidate, candidate->cost.peak_bytes), *candidate};
    if (!best || fit.plan.arena_bytes < best->plan.arena_bytes) best = std::move(fit);
  }
  return best;
}

}  // namespace cairn::plan
