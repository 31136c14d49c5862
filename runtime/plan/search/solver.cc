#include "runtime/plan/search/solver.h"

#include <algorithm>
#include <limits>

#include "runtime/plan/explain.h"
#include "runtime/plan/layout/layout.h"
#include "runtime/plan/search/fewer_copies.h"

namespace cairn::plan {

namespace {

// Twice what all values take beside the largest workspace, if that is a number: no plan needs as much, and tables are made for
// the whole budget.
int64_t most_bytes(const Problem& p) {
  int64_t bytes = 0, workspace = 0;
  for (const Value& v : p.values) bytes += v.bytes;
  for (const Op& op : p.ops) workspace = std::max(workspace, op.workspace_bytes);
  bytes += workspace;
  return bytes > std::numeric_limits<int64_t>::max() / 2 ? bytes : 2 * bytes;
}

}  // namespace

Solver::Solver(const Problem& p) : p_(p), search_(p, p.ops.size() <= kSmallProblem), one_(search_) {}

std::optional<Plan> Solver::solve(int64_t budget_bytes, Effort effort) {
  const auto known = solved_.find({budget_bytes, effort});
  if (known != solved_.end()) return known->second;
  return solved_.emplace(std::pair(budget_bytes, effort), solve_once(budget_bytes, effort)).first->second;
}

std::optional<Plan> Solver::solve_once(int64_t budget_bytes, Effort effort) {
  const int64_t budget = budget_bytes > 0 ? std::min(budget_bytes, most_bytes(p_)) : most_bytes(p_);
  // All budgets of few ops are searched for with the same effort, whoever asks first: what they answer must not depend on that.
  const bool all_at_once = p_.ops.size() <= kTinyProblem / 2;
  search_.set_layout_effort(effort == Effort::kWhole || all_at_once ? 0 : kNoEffort);
  if (budget < least_bytes(p_, search_.index)) return {};
  if (auto plan = as_it_is(budget, budget_bytes > 0)) return finish(std::move(*plan), budget_bytes, effort);
  const auto finished = [&](Search& search, std::optional<Fit> fit) -> std::optional<Plan> {
    if (!fit) return {};
    return finish(with_fewer_copies(search, std::move(*fit), budget).plan, budget_bytes, effort);
  };
  // Without a limit nothing is to be saved but waiting for copies that policies ask for, which no bound knows of: that is not worth
  // a search that takes long.
  if (budget_bytes <= 0 && p_.ops.size() > kTinyProblem) effort = std::min(effort, Effort::kQuick);
  if (!small()) return finished(search_, one_.solve(budget, effort));
  // Of few ops, plans for all budgets are sooner found than one. Whether they are there must not matter: then plans would depend
  // on what was asked before.
  if (effort != Effort::kWhole && !all_at_once) {
    if (!quick_) quick_.emplace(p_);
    return finished(quick_->search, quick_->one.solve(budget, effort));
  }
  return finished(search_, levels().fastest_within(budget));
}

Plan Solver::smallest() {
  search_.set_layout_effort(0);
  if (!small()) return one_.smallest().plan;
  return levels().lowest().plan;
}

// Nothing is faster than running each op once and never waiting; where policies ask for more, a search may
// find something better, if there is a budget at all.
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
