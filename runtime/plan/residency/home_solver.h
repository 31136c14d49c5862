// Plans for problems with values that may live in tiers. It chooses which of them are kept on the device, lets the
// search plan the other values, and inserts the copies.
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

  // budget_bytes 0: no limit. limit: seconds, home_seconds included, that are known to be possible: no slower plan is
  // looked for. Returns nothing if no plan fits, or if none below the limit is found. Plans do not depend on earlier
  // calls.
  std::optional<Plan> solve(int64_t budget_bytes, double limit, Effort);
  // A lower bound on the seconds, home_seconds included, over all placements. enough: a bound of so much is not
  // raised any further.
  double least_seconds(int64_t budget_bytes, double enough = std::numeric_limits<double>::infinity());
  // The same where no op begins before its time. earliest: these times in seconds, per op, never falling. home_costs:
  // include home_seconds, which may pass before the first op.
  double least_seconds_behind(int64_t budget_bytes, const std::vector<double>& earliest, bool home_costs);
  // The plan with the lowest arena: everything that may live in a tier lives there.
  Plan smallest();

 private:
  using Order = std::vector<int32_t>;
  struct Found {
    const Placement* placement;
    Plan plan;
    double seconds;  // home_seconds included
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
  const Problem resolved_;  // everything that may live in its tier lives there
  const Problem all_away_;  // the same without these values
  const Index index_;
  const HomeReads homes_;
  const Ends ends_;
  Order dearest_;               // values that may be kept, by falling cost of fetching per byte
  std::vector<bool> fits_;      // per value: its tier has room for it and for those before it
  std::vector<bool> may_stay_;  // per value: the plan may choose its tier or the device
  // By which values live in their tier.
  std::map<std::vector<bool>, std::unique_ptr<Placement>> placed_;
  int64_t placed_for_ = -1;  // budget that placed_ is for, of a large problem
  struct Least {
    double seconds = 0;
    bool raised = false;  // as far as possible; else up to an earlier `enough`
  };
  std::map<int64_t, Least> least_seconds_;  // bounds by budget
};

}  // namespace cairn::plan
