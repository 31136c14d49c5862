// For callers that solve the same problem at several budgets, or several times: it is searched only once.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/plan/in_parallel.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {

// No plan takes fewer bytes of the device, even if all values that may live in a tier do so. Quick to compute.
int64_t least_budget(const Problem&);

// Plans and errors are those of solve() and solve_all(). Keeps the last few problems with what was found for them, so
// that later answers take less time. For one thread at a time.
class SolverCache {
 public:
  // threads: at most so many for one search.
  explicit SolverCache(int threads = kMostThreads);
  ~SolverCache();
  SolverCache(const SolverCache&) = delete;
  SolverCache& operator=(const SolverCache&) = delete;

  Plan solve(const Problem&);
  // Nothing if no plan fits. The problem's own budget is not looked at; 0 is no limit.
  std::optional<Plan> solve_within(const Problem&, int64_t budget_bytes);
  // For a problem with values that may live in tiers. Also returns nothing if no plan is found whose seconds,
  // home_seconds included, are below `limit`. quick: returns an almost as fast plan in less time.
  std::optional<Plan> solve_below(const Problem&, int64_t budget_bytes, double limit, bool quick = false);
  // A lower bound on the seconds of any plan, home_seconds included. enough: with values that may live in tiers, a
  // bound of so much is not raised any further.
  double least_seconds(const Problem&, int64_t budget_bytes,
                       double enough = std::numeric_limits<double>::infinity());
  // The same for a problem with values that may live in tiers, where no op begins before its time. earliest: these
  // times in seconds, per op, never falling. home_costs: include home_seconds, which may pass before the first op.
  double least_seconds_behind(const Problem&, int64_t budget_bytes, const std::vector<double>& earliest,
                              bool home_costs);
  // Returns an almost as fast plan in less time. Returns nothing where only plans close to the smallest fit, as these
  // take long to find. The plan's bound and gap are those of a rough bound; least_seconds() is not rough.
  std::optional<Plan> solve_quickly(const Problem&, int64_t budget_bytes);
  // Takes still less time. Where the plan is far above the bound, a faster one may exist.
  std::optional<Plan> solve_roughly(const Problem&, int64_t budget_bytes);
  // The plan with the lowest arena; only its steps, offsets and bytes are set.
  Plan smallest(const Problem&);
  // kOverBudget, as solve() fails.
  [[noreturn]] void refuse(const Problem&);
  double age_seconds() const;  // seconds since the cache was made

 private:
  class Either;
  struct Solvers;
  const double began_;
  std::unique_ptr<Solvers> solvers_;
};

}  // namespace cairn::plan
