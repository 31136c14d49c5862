// A problem in which it is decided which values live in their tier. The search plans the other values. The copies of
// the tier-resident values are then inserted into these plans.
#pragma once
#include <limits>
#include <optional>

#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/residency/residence.h"
#include "runtime/plan/residency/stream.h"
#include "runtime/plan/search/recent.h"
#include "runtime/plan/search/solver.h"

namespace cairn::plan {

class Placement {
 public:
  // away: per value, whether a value that may live in its tier does so.
  Placement(const Problem&, const std::vector<bool>& away, int threads = kMostThreads);

  // Lower bounds of any plan: bytes on the device, seconds under a budget (rough), seconds on the links.
  int64_t least_bytes() const { return least_bytes_; }
  double least_seconds(int64_t budget_bytes);
  double link_seconds() const { return link_seconds_; }
  // The sum of Value::home_seconds of tier-resident values.
  double home_seconds() const { return home_seconds_; }

  // A plan without tier-resident values, in which no op run again reads a value that was changed. It does not depend
  // on earlier calls.
  std::optional<Plan> plan_without(int64_t budget_bytes, Effort);
  // The plan with the lowest arena.
  Plan smallest_without();

  // The plan with copies inserted and offsets assigned, if it fits; infinite seconds mean that it does not. Between
  // uses that are at most `keep` seconds apart the value remains on the device, where there is room. Offsets take
  // long to find, so no plan is made where copies alone take `limit` seconds. layout_effort: as of assign_offsets();
  // above 0, copies that do not fit first leave more room only at the steps where they do not fit, then everywhere.
  struct Copies {
    double seconds = std::numeric_limits<double>::infinity();
    std::optional<Plan> plan;
  };
  Copies streamed(const Plan&, int64_t budget_bytes, double keep, double limit, int64_t layout_effort) const;
  // Two parts of streamed(): the steps before offsets are assigned, and the offsets for them. less: as of
  // stream_homes().
  Streamed stream(const Plan&, int64_t budget_bytes, double keep, const Streamed* less = nullptr) const;
  Copies fitted(const Plan&, Streamed, int64_t budget_bytes, double keep, double limit,
                int64_t layout_effort) const;
  // Every value is fetched right before each op that uses it, into the room that the plan has for it.
  Plan stalled(const Plan&) const;
  double stalled_seconds(const Plan&) const;

  // Of the values that are not tier-resident.
  int64_t persistent_bytes() const { return index_without_.persistent_bytes; }
  const Problem& resolved() const { return resolved_; }
  const Index& index() const { return index_; }

 private:
  template <class Ask>
  std::optional<Plan> without_stale_runs(Ask ask);
  void put_into_workspaces(const Plan&, Plan& with) const;

  const Problem& p_;
  const Problem resolved_;
  const Index index_;
  Problem without_;  // the links have the rates that copies of tier-resident values leave over
  std::vector<Link> links_;
  const Index index_without_;
  Recent<Solver> solvers_;
  int64_t least_bytes_ = 0;
  double link_seconds_ = 0, home_seconds_ = 0;
};

}  // namespace cairn::plan
