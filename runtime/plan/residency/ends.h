// What a plan waits for at its two ends: before its first ops, until values that have to live in their tier are
// fetched; after its last ops, until changed values are back in their tier. A bound on this, which the program points
// of runtime/plan/bound do not include.
#pragma once
#include <optional>
#include <vector>

#include "runtime/plan/bound/bound.h"

namespace cairn::plan {

// The ops of a problem up to the one after which the copies back to the tiers take longest, and what is waited for
// before and after them.
class Ends {
 public:
  // A problem with values that may live in tiers.
  explicit Ends(const Problem&);

  // A lower bound on the seconds of any plan, without home_seconds; 0 if nothing is waited for at the ends. earliest:
  // as for lower_bound_seconds_behind(); home_seconds may pass before these times. Empty: all zero.
  double least_seconds(int64_t budget_bytes, const std::vector<double>& earliest,
                       int threads = kMostThreads) const;

 private:
  // Both functions return by how many seconds the plan is longer than its ops. Copies of one direction run one after
  // the other on each link.
  double find_tail(const Problem&);
  double find_earliest(const Problem&);

  double behind_ = 0;  // seconds of copies after op last_
  size_t last_ = 0;
  std::vector<double> earliest_;  // per op up to last_: the seconds before which it cannot begin
  std::optional<Problem> problem_;
  std::optional<Index> index_;
  HomeReads homes_;
};

}  // namespace cairn::plan
