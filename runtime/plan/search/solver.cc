#include "runtime/plan/search/solver.h"

#include <algorithm>
#include <limits>

#include "runtime/plan/explain.h"
#include "runtime/plan/layout/layout.h"
#include "runtime/plan/search/fewer_copies.h"

namespace cairn::plan {

namespace {

// Twice the bytes of all values and of the largest workspace, if that does not overflow. No plan needs as much.
// Tables grow with the budget, so a larger budget is reduced to this.
int64_t most_bytes(const Problem& p) {
  int64_t bytes = 0, workspace = 0;
  for (const Value& v : p.values) bytes += v.bytes;
  for (const Op& op : p.ops) workspace = std::max(workspace, op.workspace_bytes);
  bytes += workspace;
  return bytes > std::numeric_limits<int64_t>::max() / 2 ? bytes : 2 * bytes;
}

}  // namespace

Solver::Solver(const Problem& p, int threads)
    : p_(p), threads_(threads), search_(p, p.ops.size() <= kSmallProblem, threads), one_(search_) {}

std::optional<Plan> Solver::solve(int64_t budget_bytes, Effort effort) {
  const auto known = solved_.find({budget_bytes, effort});
  if (known != solved_.end()) return known->second;
  return solved_.emplace(std::pair(budget_bytes, effort), solve_once(budget_bytes, effort)).first->second;
}

std::optional<Plan> Solver::solve_once(int64_t budget_bytes, Effort effort) {
  const int64_t budget = budget_bytes > 0 ? std::min(budget_bytes, most_bytes(p_)) : most_bytes(p_);
  // Very small problems are searched for all budgets at once, always with the same effort: answers must not depend on
  // which question comes first.
  const bool all_at_once = p_.ops.size() <= kTinyProblem / 2;
  search_.set_layout_effort(effort == Effort::kWhole || all_at_once ? 0 : kNoEffort);
  if (budget < least_bytes(p_, search_.index)) return {};
  if (auto plan = as_it_is(budget, budget_bytes > 0)) return finish(std::move(*plan), budget_bytes, effort);
  const auto finished = [&](Search& search, std::optional<Fit> fit) -> std::optional<Plan> {
    if (!fit) return {};
    return finish(with_fewer_copies(search, std::move(*fit), budget).plan, budget_bytes, effort);
  };
  // Without a budget, a search can only avoid waits for copies that policies ask for. That is not worth a long
  // search.
  if (budget_bytes <= 0 && p_.ops.size() > kTinyProblem) effort = std::min(effort, Effort::kQuick);
  if (!small()) return finished(search_, one_.solve(budget, effort));
  // Plans for all budgets may be known already. They are not used here: else plans would depend on earlier questions.
  if (effort != Effort::kWhole && !all_at_once) {
    if (!quick_) quick_.emplace(p_, threads_);
    return finished(quick_->search, quick_->one.solve(budget, effort));
  }
  return finished(search_, levels().fastest_within(budget));
}

Plan Solver::smallest() {
  search_.set_layout_effort(0);
  if (!small()) return one_.smallest().plan;
  return levels().lowest().plan;
}

// The plan that keeps everything, if it fits. No plan is faster unless policies make it wait or recompute; then a
// search may find a faster one.
std::optional<Plan> Solver::as_it_is(int64_t budget, bool limited) {
  const Candidate least{search_.rules.base, {}, search_.evaluate(search_.rules.base, {}, search_.sequence)};
  const double seconds = small() && limited ? search_.index.total_seconds : search_.sequence.seconds;
  if (least.cost.peak_bytes > budget || least.cost.seconds > seconds) return {};
  Plan plan = search_.lay_out(least, budget);
  if (plan.arena_bytes > budget) return {};
  return plan;
}

Levels& Solver::levels() {
  if (!levels_) levels_.emplace(search_);
  return *levels_;
}

Plan Solver::finish(Plan plan, int64_t budget_bytes, Effort effort) {
  plan.budget_bytes = budget_bytes;
  plan.predicted_seconds = simulate(p_, plan).seconds;
  plan.keep_all_seconds = search_.index.total_seconds;
  plan.bound_seconds = effort == Effort::kWhole
                           ? search_.bound_seconds_below(plan.predicted_seconds, budget_bytes)
                           : search_.bound_seconds(budget_bytes, effort);
  plan.gap = plan.bound_seconds > 0 ? (plan.predicted_seconds - plan.bound_seconds) / plan.bound_seconds : 0;
  explain(p_, search_.index, search_.rules, plan);
  return plan;
}

}  // namespace cairn::plan
