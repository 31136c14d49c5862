#include "runtime/plan/search/search.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/plan/bound/bound.h"
#include "runtime/plan/layout/layout.h"

namespace cairn::plan {
namespace {

// One part in so many of the budget is kept free of copies, as room for holes of the layout.
constexpr int64_t kFreeOfCopies[] = {20, 10, 5};

constexpr int64_t kExactEffort = 30;      // of assign_offsets(): at most some 3 s
constexpr double kWorthRaising = 1.5e-2;  // gaps to the bound for which a higher bound is computed
constexpr double kUnlimitedSeconds = std::numeric_limits<double>::infinity();
constexpr double kMuch = 1e-2;  // share of a plan's seconds that counts as much faster

std::vector<Pace> paces_of(const Problem& p) {
  if (p.links.empty()) return {{}};
  int64_t largest = 0;
  for (const Value& v : p.values)
    if (!v.persistent) largest = std::max(largest, v.bytes);
  return {{}, {4 * std::min(largest, std::numeric_limits<int64_t>::max() / 8)}, {0}};
}

}  // namespace

Search::Search(const Problem& problem, bool arenas_follow_peaks, int threads)
    : p(problem),
      index(p),
      intervals(p, index),
      rules(p, index, intervals),
      evaluate(p, index, intervals),
      local_search(p, index, intervals, rules, evaluate, archive),
      arenas_follow_peaks_(arenas_follow_peaks),
      threads_(threads),
      paces_(paces_of(p)) {}

void Search::restart() {
  archive = {};
  exact_.clear();
  local_search.restart();
  for (const Pace& pace : paces_) try_retention(rules.base, pace);
}

bool Search::try_retention(const RetentionPoints& t, Pace pace) {
  const Cost cost = evaluate(t, pace, sequence);
  if (cost.valid) archive.add(t, pace, cost);
  return cost.valid;
}

RetentionPoints Search::everything_sent() const {
  RetentionPoints t = rules.base;
  std::vector<int64_t> room;
  for (const Link& link : p.links) room.push_back(link.capacity_bytes);
  for (size_t v = 0; v < p.values.size(); ++v) {
    const auto link =
        std::find_if(room.begin(), room.end(), [&](int64_t left) { return left >= p.values[v].bytes; });
    if (link == room.end()) continue;
    bool any = false;
    for (int32_t g = intervals.first[v]; g < intervals.first[v + 1]; ++g) {
      if (!rules.sent[g]) continue;
      t[g] = over_link(static_cast<int32_t>(link - room.begin()));
      any = true;
    }
    if (any) *link -= p.values[v].bytes;
  }
  return t;
}

int32_t widest_link(const Problem& p, const Index& index) {
  const auto bytes = [&](const Link& link) {
    const double slower = std::min(link.in_bytes_per_second, link.out_bytes_per_second);
    return std::min(slower * index.forward_seconds, static_cast<double>(link.capacity_bytes));
  };
  const auto widest = std::max_element(p.links.begin(), p.links.end(),
                                       [&](const Link& a, const Link& b) { return bytes(a) < bytes(b); });
  return static_cast<int32_t>(widest - p.links.begin());
}

// Where memory is always full, the layout has holes. Limits on the memory of copies leave room for these holes.
void Search::send_around_full(const Candidate& from, int64_t target) {
  for (const int64_t part : kFreeOfCopies)
    for (const bool hidden : {false, true}) {
      Candidate c = from;
      c.pace.limit_bytes = target - (target - index.persistent_bytes) / part;
      local_search.send_around_full(c, target, widest_link(p, index), hidden);
    }
}

double Search::bound_seconds(int64_t budget, Effort effort) {
  const auto known = bounds_.find({budget, effort});
  if (known != bounds_.end()) return known->second;
  const double bound = effort == Effort::kWhole
                           ? lower_bound_seconds(p, index, budget, {}, kUnlimitedSeconds, threads_)
                           : rough_bound_seconds(p, index, budget);
  return bounds_.emplace(std::pair(budget, effort), bound).first->second;
}

double Search::bound_seconds_below(double seconds, int64_t budget) {
  const double bound = bound_seconds(budget);
  if (seconds <= bound * (1 + kWorthRaising)) return bound;
  const auto known = raised_.find(budget);
  if (known != raised_.end()) return known->second;
  const double raised = std::max(bound, several_points_bound_seconds(p, index, budget, threads_));
  return raised_.emplace(budget, raised).first->second;
}

RetentionPoints Search::retention_of(const OptionSets& sets, const Chosen& chosen) const {
  RetentionPoints t = rules.base;
  for (size_t stage = 0; stage < chosen.options.size(); ++stage) sets.apply(stage, *chosen.options[stage], t);
  return t;
}

Plan Search::scheduled(const Candidate& c) {
  Schedule s = evaluate.schedule(c.retention_points, c.pace, sequence);
  Plan plan;
  plan.steps = std::move(s.steps);
  plan.device_peak_bytes = s.peak_bytes;
  plan.tier_peak_bytes = std::move(s.tier_peak_bytes);
  plan.predicted_seconds = s.seconds;
  return plan;
}

int64_t Search::capacity_for(const Candidate& c, int64_t budget) const {
  return arenas_follow_peaks_ ? c.cost.peak_bytes : budget;
}

Plan Search::lay_out(const Candidate& c, int64_t budget) {
  Plan plan = scheduled(c);
  const int64_t capacity = capacity_for(c, budget);
  assign_offsets(p, index, plan, capacity == std::numeric_limits<int64_t>::max() ? 0 : capacity,
                 layout_effort_);
  return plan;
}

int64_t Search::searched_capacity(const Candidate& c) const {
  const int64_t above = (c.cost.peak_bytes - index.persistent_bytes) / 50 / kAlignment * kAlignment;
  return c.cost.peak_bytes + std::min(above, std::numeric_limits<int64_t>::max() - c.cost.peak_bytes);
}

bool Search::worth_searching(const Candidate& c, const std::optional<Fit>& there_is) {
  return !there_is || c.cost.seconds * (1 + kMuch) < there_is->plan.predicted_seconds;
}

std::optional<Fit> Search::lay_out_exactly(const Candidate& c, int64_t capacity) {
  Plan plan = scheduled(c);
  assign_offsets(p, index, plan, capacity, kExactEffort);
  if (plan.arena_bytes > capacity) return {};
  return Fit{std::move(plan), c};
}

void Search::lay_out_for_all(const Candidate& c) {
  if (auto fit = lay_out_exactly(c, searched_capacity(c))) exact_.push_back(std::move(*fit));
}

std::optional<Fit> Search::fastest_within(int64_t peak, int64_t budget, int attempts, int64_t* first_over) {
  if (first_over) *first_over = 0;
  bool first = true;
  const Fit* exact = nullptr;
  for (const Fit& fit : exact_)
    if (fit.plan.arena_bytes <= budget &&
        (!exact || fit.plan.predicted_seconds < exact->plan.predicted_seconds))
      exact = &fit;
  for (const Candidate* candidate : archive.by_seconds(peak)) {
    if (attempts-- == 0 || (exact && exact->from.cost.seconds <= candidate->cost.seconds)) break;
    const LayoutKey key{candidate->cost.order, candidate->cost.seconds, candidate->cost.peak_bytes,
                        capacity_for(*candidate, budget), layout_effort_};
    const auto known = candidate->cost.order != 0 ? too_high_.find(key) : too_high_.end();
    std::optional<Fit> fit;
    if (known == too_high_.end() || known->second <= budget)
      fit.emplace(Fit{lay_out(*candidate, budget), *candidate});
    const int64_t arena = fit ? fit->plan.arena_bytes : known->second;
    if (first_over && first) *first_over = std::max<int64_t>(0, arena - budget);
    first = false;
    if (arena <= budget) return fit;
    if (candidate->cost.order != 0) too_high_.emplace(key, arena);
  }
  if (exact) return *exact;
  return {};
}

std::optional<Fit> Search::lowest() {
  std::vector<const Candidate*> list = archive.by_seconds(std::numeric_limits<int64_t>::max());
  std::stable_sort(list.begin(), list.end(), [](const Candidate* a, const Candidate* b) {
    return a->cost.peak_bytes < b->cost.peak_bytes;
  });
  std::optional<Fit> best;
  for (const Fit& fit : exact_)
    if (!best || fit.plan.arena_bytes < best->plan.arena_bytes) best = fit;
  for (const Candidate* candidate : list) {
    if (best && candidate->cost.peak_bytes >= best->plan.arena_bytes) break;  // no arena is below its peak
    Fit fit{lay_out(*candidate, candidate->cost.peak_bytes), *candidate};
    if (!best || fit.plan.arena_bytes < best->plan.arena_bytes) best = std::move(fit);
  }
  return best;
}

}  // namespace cairn::plan
