// For callers that solve the same problem at several budgets, or several times: it is searched once.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/plan/in_parallel.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {

// No plan takes fewer bytes of the device, even if all values that may live in a tier do. Quick to compute.
int64_t least_budget(const Problem&);

// Plans and errors are those of solve() and solve_all(). Keeps the last few problems with what was found for them, so that answers come
// sooner. One thread at a time.
class SolverCache {
 public:
  // threads: that one search uses at most.
  explicit SolverCache(int threads = kMostThreads);
  ~SolverCache();
  SolverCache(const SolverCache&) = delete;
  SolverCache& operator=(const SolverCache&) = delete;

  Plan solve(const Problem&);
  // Nothing if no plan fits. The problem's own budget is not looked at; 0 is no limit.
  std::optional<Plan> solve_within(const Problem&, int64_t budget_bytes);
  // Of a problem with values that may live in tiers; nothing, too, if no plan is found whose seconds, with what living in a tier
  // costs, are below `limit`.
  // quick: about as fast a plan, sooner.
  std::optional<Plan> solve_below(const Problem&, int64_t budget_bytes, double limit, bool quick = false);
  // No plan's seconds, with what living in a tier costs, are fewer. enough: with values that may live in tiers, a bound of so
  // much is not raised any further.
  double least_seconds(const Problem&, int64_t budget_bytes,
                       double enough = std::numeric_limits<double>::infinity());
  // Of a problem with values that may live in tiers, where no op begins before its time (`earliest`, seconds per op, never
  // falling): no plan takes less.
  // home_costs: with what living in a tier costs, which may pass before the first op.
  double least_seconds_behind(const Problem&, int64_t budget_bytes, const std::vector<double>& earliest,
                              bool home_costs);
  // About as fast a plan, sooner; also nothing where only plans close to the smallest fit, which take long to find. Its bound and gap
  // are of a rough bound; least_seconds() is not.
  std::optional<Plan> solve_quickly(const Problem&, int64_t budget_bytes);
  // Sooner still, and where that comes nowhere near the bound slower than need be.
  std::optional<Plan> solve_roughly(const Problem&, int64_t budget_bytes);
  // The plan with the lowest arena; only its steps, offsets and bytes are set.
  Plan smallest(const Problem&);
  // kOverBudget, as solve() fails.
  [[noreturn]] void refuse(const Problem&);
  double age_seconds() const;  // since it was made

 private:
  class Either;
  struct Solvers;
  const double began_;
  std::unique_ptr<Solvers> solvers_;
};

}  // namespace cairn::plan
