// From a budget to a plan: first the plan that keeps everything, then the searches, then decisions, reasons and the
// bound.
#pragma once
#include <map>
#include <optional>

#include "runtime/plan/search/levels.h"
#include "runtime/plan/search/one_budget.h"

namespace cairn::plan {

// Solves one problem for any budget; the problem's own budget is ignored. Results are cached, so that later questions
// take less time. Plans do not depend on earlier questions.
class Solver {
 public:
  explicit Solver(const Problem&, int threads = kMostThreads);

  // budget_bytes 0: no limit. Nothing if no plan fits.
  std::optional<Plan> solve(int64_t budget_bytes, Effort effort = Effort::kWhole);
  // A lower bound on the seconds of any plan.
  double least_seconds(int64_t budget_bytes) { return search_.bound_seconds(budget_bytes); }
  // The plan with the lowest arena that solve() can find.
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
  const int threads_;
  Search search_;
  OneBudget one_;
  std::optional<Levels> levels_;  // a small problem's plans for all budgets
  // Quick searches of a small problem. They have an archive of their own, as they would overwrite the plans for all
  // budgets.
  struct Quick {
    Quick(const Problem& p, int threads) : search(p, false, threads), one(search) {}
    Search search;
    OneBudget one;
  };
  std::optional<Quick> quick_;
  std::map<std::pair<int64_t, Effort>, std::optional<Plan>> solved_;  // plans by budget and effort
};

}  // namespace cairn::plan
