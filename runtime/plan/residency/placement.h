// A problem in which it is decided which values live in their tier. Plans of the other values come from the search; the copies of those
// in tiers are put into these plans.
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
  // away: by value, whether one that may live in their tier does.
  Placement(const Problem&, const std::vector<bool>& away, int threads = kMostThreads);

  // Lower bounds of any plan: bytes on the device, seconds under a budget (rough), seconds on the links.
  int64_t least_bytes() const { return least_bytes_; }
  double least_seconds(int64_t budget_bytes);
  double link_seconds() const { return link_seconds_; }
  // Value::home_seconds of what lives in its tier.
  double home_seconds() const { return home_seconds_; }

  // A plan without values that live in tiers, none of whose ops reads what was changed. The same whatever was asked before.
  std::optional<Plan> plan_without(int64_t budget_bytes, Effort);
  // The plan with the lowest arena.
  Plan smallest_without();

  // The copies put in, with offsets, where that fits. Uses that are at most `keep` seconds apart have the value in
  // between, where there is room. Offsets take long to find, so that there is no plan where copies alone take `limit`
  // seconds; infinite seconds: it does not fit. layout_effort: as of assign_offsets(); above 0, copies that do not fit leave more room
  // only where they do not, before they do everywhere.
  struct Copies {
    double seconds = std::numeric_limits<double>::infinity();
    std::optional<Plan> plan;
  };
  Copies streamed(const Plan&, int64_t budget_bytes, double keep, double limit, int64_t layout_effort) const;
  // The steps of that before they have to fit, and what becomes of them. less: as of stream_homes().
  Streamed stream(const Plan&, int64_t budget_bytes, double keep, const Streamed* less = nullptr) const;
  Copies fitted(const Plan&, Streamed, int64_t budget_bytes, double keep, double limit,
                int64_t layout_effort) const;
  // Every value comes right before the op that uses it, into the room that the plan has for that.
  Plan stalled(const Plan&) const;
  double stalled_seconds(const Plan&) const;

  // Of the values that are not streamed.
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
  Problem without_;  // its links have the rates that copies of what lives in its tier leave
  std::vector<Link> links_;
  const Index index_without_;
  Recent<Solver> solvers_;
  int64_t least_bytes_ = 0;
  double link_seconds_ = 0, home_seconds_ = 0;
};

}  // namespace cairn::plan
