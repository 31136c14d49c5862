// Plans of problems with values that may live in tiers. It chooses which of them stay on the device, has the search plan the others, and
// puts the copies in.
#pragma once
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/plan/bound/bound.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/residency/ends.h"
#include "runtime/plan/residency/placement.h"
#include "runtime/plan/search/effort.h"

namespace cairn::plan {

class HomeSolver {
 public:
  explicit HomeSolver(const Problem&, int threads = kMostThreads);
  ~HomeSolver();
  HomeSolver(const HomeSolver&) = delete;
  HomeSolver& operator=(const HomeSolver&) = delete;

  // budget_bytes 0: no limit. limit: seconds, with what living in a tier costs, that are known to be possible: a slower plan is
  // not looked for. Nothing if no plan fits, or none below the limit is found. Plans do not depend on what was asked before.
  std::optional<Plan> solve(int64_t budget_bytes, double limit, Effort);
  // No plan of any placement is faster, with what living in a tier costs. enough: a bound of so much is not raised any further.
  double least_seconds(int64_t budget_bytes, double enough = std::numeric_limits<double>::infinity());
  // Where no op begins before its time (`earliest`, seconds per op, never falling). home_costs: with what living in a tier costs, which
  // may pass before the first op.
  double least_seconds_behind(int64_t budget_bytes, const std::vector<double>& earliest, bool home_costs);
  // With the lowest arena: everything that may live in a tier lives there.
  Plan smallest();

 private:
  using Order = std::vector<int32_t>;
  struct Found {
    const Placement* placement;
    Plan plan;
    double seconds;  // with what living in a tier costs
  };

  bool is_small() const { return p_.ops.size() <= kSmallProblem; }
  std::vector<Order> orders_for(int64_t budget_bytes) const;
  Order order_by_bound(int64_t budget_bytes) const;
  Order exposed_first(Order) const;
  Placement& placed(const Order&, size_t stay);
  void climb_down(std::optional<Found>& best, double limit, int64_t budget_bytes);
  std::vector<int64_t> rungs_below(int64_t budget_bytes);
  std::optional<Found> search(const Order&, int64_t budget_bytes, double limit, Effort);
  std::optional<Found> search(int64_t budget_bytes, double limit, Effort);
  Plan finish(const Placement&, Plan, int64_t budget_bytes);

  const Problem& p_;
  const int threads_;
  const Problem resolved_;  // everything that may live in their tier does
  const Problem all_away_;  // and is no value of its own
  const Index index_;
  const HomeReads homes_;
  const Ends ends_;
  Order dearest_;               // values that may stay, those first that are dearest to fetch for their bytes
  std::vector<bool> fits_;      // per value: its tier has room for it, beside those before it
  std::vector<bool> may_stay_;  // per value: it lives in its tier, or on the device
  std::map<std::vector<bool>, std::unique_ptr<Placement>> placed_;  // by which values live in their tier
  int64_t placed_for_ = -1;                                         // budget, of a large problem
  struct Least {
    double seconds = 0;
    bool raised = false;  // as far as it goes; else to what was enough once
  };
  std::map<int64_t, Least> least_seconds_;  // by budget
};

}  // namespace cairn::plan
