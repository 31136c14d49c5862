// From a budget to a plan: policies and what fits as it is, then the searches, then what explains the plan.
#include <chrono>
#include <limits>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/plan/bound/bound.h"
#include "runtime/plan/explain.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/search/fewer_copies.h"
#include "runtime/plan/search/search.h"

namespace cairn::plan {
namespace {

class Solver {
 public:
  explicit Solver(const Problem& p) : p_(p), search_(p, small(p)), one_(search_) {}

  // budget_bytes 0: no limit. Nothing if no plan fits.
  std::optional<Plan> solve(int64_t budget_bytes) {
    const int64_t budget = budget_bytes > 0 ? budget_bytes : std::numeric_limits<int64_t>::max();
    if (auto plan = as_it_is(budget, budget_bytes > 0)) return finish(std::move(*plan), budget_bytes);
    if (small(p_)) search_all();
    auto fit = small(p_) ? search_.fastest_within(budget, budget) : one_.solve(budget);
    if (!fit) return {};
    return finish(with_fewer_copies(search_, std::move(*fit), budget).plan, budget_bytes);
  }

  // Of all plans that solve() knows, the one with the lowest arena.
  Plan smallest() {
    if (!small(p_)) return one_.smallest().plan;
    search_all();
    return search_.lowest()->plan;
  }

 private:
  static bool small(const Problem& p) { return p.ops.size() <= kSmallProblem; }

  // Nothing is faster than running each op once and never waiting; where policies ask for more, a search may
  // find something better, if there is a budget at all.
  std::optional<Plan> as_it_is(int64_t budget, bool limited) {
    const Candidate least{search_.rules.base, {}, search_.evaluate(search_.rules.base, {}, search_.sequence)};
    const double seconds = small(p_) && limited ? search_.index.total_seconds : search_.sequence.seconds;
    if (least.cost.peak_bytes > budget || least.cost.seconds > seconds) return {};
    Plan plan = search_.lay_out(least, budget);
    if (plan.arena_bytes > budget) return {};
    return plan;
  }

  void search_all() {
    if (!searched_) search_all_budgets(search_);
    searched_ = true;
  }

  Plan finish(Plan plan, int64_t budget_bytes) const {
    plan.budget_bytes = budget_bytes;
    plan.predicted_seconds = simulate(p_, plan).seconds;
    plan.keep_all_seconds = search_.index.total_seconds;
    plan.bound_seconds = lower_bound_seconds(p_, search_.index, budget_bytes);
    plan.gap =
        plan.bound_seconds > 0 ? (plan.predicted_seconds - plan.bound_seconds) / plan.bound_seconds : 0;
    explain(p_, search_.index, search_.rules, plan);
    return plan;
  }

  const Problem& p_;
  Search search_;
  OneBudget one_;
  bool searched_ = false;  // a small problem's plans for all budgets are there
};

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Plan solve(const Problem& p) {
  const auto start = std::chrono::steady_clock::now();
  check(p);
  Solver solver(p);
  std::optional<Plan> plan = solver.solve(p.budget_bytes);
  if (!plan) fail_over_budget(p, Index(p), solver.smallest());
  plan->solve_seconds = since(start);
  return std::move(*plan);
}

std::vector<std::optional<Plan>> solve_all(const Problem& p, const std::vector<int64_t>& budgets) {
  check(p);
  Solver solver(p);
  std::vector<std::optional<Plan>> plans;
  for (int64_t budget : budgets) {
    const auto start = std::chrono::steady_clock::now();
    plans.push_back(solver.solve(budget));
    if (plans.back()) plans.back()->solve_seconds = since(start);
  }
  return plans;
}

}  // namespace cairn::plan
