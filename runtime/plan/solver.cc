// The search: evaluates the candidates of Space by their schedules, and takes the fastest whose layout fits.
// A later, better search replaces Space and this file; schedule, layout, bound, explain and the forms stay.
#include <algorithm>
#include <chrono>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/plan/bound.h"
#include "runtime/plan/explain.h"
#include "runtime/plan/layout.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/space.h"

namespace cairn::plan {
namespace {

struct Tried {
  Candidate candidate;
  double seconds = 0;
  int64_t peak_bytes = 0;
};

class Solver {
 public:
  explicit Solver(const Problem& p)
      : p_(p), index_(p), space_(p, index_), budget_(p.budget_bytes > 0 ? p.budget_bytes : INT64_MAX) {}

  Plan solve() {
    if (const Schedule least = schedule({}); least.peak_bytes <= budget_ && never_waits(least)) {
      Plan plan = lay_out_candidate({});  // nothing is faster than doing the least
      if (plan.arena_bytes <= budget_) return finish(std::move(plan));
    }
    std::vector<Tried> tried;
    for (const Candidate& candidate : space_.grid()) tried.push_back(evaluate(candidate));
    std::stable_sort(tried.begin(), tried.end(), [](const Tried& a, const Tried& b) {
      return a.seconds != b.seconds ? a.seconds < b.seconds : a.peak_bytes < b.peak_bytes;
    });
    return finish(first_that_fits(tried));
  }

 private:
  Schedule schedule(const Candidate& c) const { return make_schedule(p_, index_, space_.choices(c), c.pace); }

  bool never_waits(const Schedule& s) const {
    double sum = 0;
    for (const Step& step : s.steps)
      if (step.kind == StepKind::kRun) sum += p_.ops[step.index].seconds;
    return s.seconds <= sum;
  }

  Tried evaluate(const Candidate& c) const {
    const Schedule s = schedule(c);
    return {c, s.seconds, s.peak_bytes};
  }

  Plan lay_out_candidate(const Candidate& c) const {
    Schedule s = schedule(c);
    Plan plan;
    plan.steps = std::move(s.steps);
    plan.device_peak_bytes = s.peak_bytes;
    plan.tier_peak_bytes = std::move(s.tier_peak_bytes);
    assign_offsets(p_, index_, plan);
    return plan;
  }

  // `tried` by rising seconds. Layout costs more than a schedule, so it is made only where the peak fits.
  Plan first_that_fits(const std::vector<Tried>& tried) const {
    for (const Tried& t : tried) {
      if (t.peak_bytes > budget_) continue;
      Plan plan = lay_out_candidate(t.candidate);
      if (plan.arena_bytes > budget_) continue;
      if (space_.fine()) return plan;
      return refined(tried, t, std::move(plan));
    }
    fail_over_budget(p_, index_, smallest(tried));
  }

  Plan smallest(const std::vector<Tried>& tried) const {
    std::vector<size_t> order(tried.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return tried[a].peak_bytes < tried[b].peak_bytes; });
    Plan best;
    best.arena_bytes = INT64_MAX;
    for (size_t i : order) {
      if (tried[i].peak_bytes >= best.arena_bytes) break;  // an arena is never lower than its peak
      Plan plan = lay_out_candidate(tried[i].candidate);
      if (plan.arena_bytes < best.arena_bytes) best = std::move(plan);
    }
    return best;
  }

  // Looks between the grid's points: takes a few of the fastest families that fit and does less of each
  // thing, as long as the peak fits.
  Plan refined(const std::vector<Tried>& tried, const Tried& found, Plan plan) const {
    std::vector<Tried> better;
    int families = 0;
    for (const Tried& t : tried) {
      if (t.peak_bytes > budget_) continue;
      if (++families > kFamilies) break;
      const Tried less = do_less(t);
      if (less.seconds < found.seconds) better.push_back(less);
    }
    std::stable_sort(better.begin(), better.end(),
                     [](const Tried& a, const Tried& b) { return a.seconds < b.seconds; });
    for (const Tried& t : better) {
      Plan other = lay_out_candidate(t.candidate);
      if (other.arena_bytes <= budget_) return other;
    }
    return plan;
  }

  Tried do_less(Tried at) const {
    for (int32_t Candidate::*coordinate : {&Candidate::groups, &Candidate::cheap, &Candidate::offload}) {
      int32_t low = -1, high = at.candidate.*coordinate;  // high fits, low does not
      while (high - low > 1) {
        Candidate c = at.candidate;
        c.*coordinate = low + (high - low) / 2;
        const Tried t = evaluate(c);
        const bool fits = t.peak_bytes <= layout_room();
        if (fits && t.seconds <= at.seconds) at = t;
        (fits ? high : low) = c.*coordinate;
      }
    }
    return at;
  }

  // Leaves a little for what layout adds to the peak.
  int64_t layout_room() const { return budget_ - (budget_ - index_.persistent_bytes) / 2000; }

  Plan finish(Plan plan) const {
    plan.budget_bytes = p_.budget_bytes;
    plan.predicted_seconds = simulate(p_, plan).seconds;
    plan.keep_all_seconds = index_.total_seconds;
    plan.bound_seconds = lower_bound_seconds(p_, index_, p_.budget_bytes);
    plan.gap =
        plan.bound_seconds > 0 ? (plan.predicted_seconds - plan.bound_seconds) / plan.bound_seconds : 0;
    explain(p_, index_, space_, plan);
    return plan;
  }

  static constexpr int kFamilies = 6;
  const Problem& p_;
  Index index_;
  Space space_;
  int64_t budget_;
};

}  // namespace

Plan solve(const Problem& p) {
  const auto start = std::chrono::steady_clock::now();
  check(p);
  Plan plan = Solver(p).solve();
  plan.solve_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace cairn::plan
