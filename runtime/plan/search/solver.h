// From a budget to a plan: policies and what fits as it is, then the searches, then what explains the plan.
#pragma once
#include <map>
#include <optional>

#include "runtime/plan/search/levels.h"

namespace cairn::plan {

// For one problem; its own budget is not looked at. What it has found it keeps, so that other budgets, and the
// same ones again, take less; plans do not depend on what was asked before.
class Solver {
 public:
  explicit Solver(const Problem&);

  // budget_bytes 0: no limit. Nothing if no plan fits.
  std::optional<Plan> solve(int64_t budget_bytes, Effort effort = Effort::kWhole);
  // No plan is faster.
  double least_seconds(int64_t budget_bytes) { return search_.bound_seconds(budget_bytes); }
  // Of all plans that solve() knows, the one with the lowest arena.
  Plan smallest();
  // Runs of ops that all searches together have priced so far.
  int64_t work() const { return search_.evaluate.work(); }

 private:
  bool small() const { return p_.ops.size() <= kSmallProblem; }
  std::optional<Plan> solve_once(int64_t budget_bytes, Effort effort);
  std::optional<Plan> as_it_is(int64_t budget, bool limited);
  Levels& levels();
  Plan finish(Plan plan, int64_t budget_bytes, Effort effort);

  const Problem& p_;
  Search search_;
  OneBudget one_;
  std::optional<Levels> levels_;  // a small problem's plans for all budgets
  // A small problem's plans for one budget, quickly: apart from those for all budgets, which they would overwrite.
  struct Quick {
    explicit Quick(const Problem& p) : search(p, false), one(search) {}
    Search search;
    OneBudget one;
  };
  std::optional<Quick> quick_;
  std::map<std::pair<int64_t, Effort>, std::optional<Plan>> solved_;  // by budget
};

}  // namespace cairn::plan
