// What a plan waits for at its ends: before its first ops for values that have to live in their tier, after its last ones for those to be
// back. A bound that the program points of runtime/plan/bound do not know.
#pragma once
#include <optional>
#include <vector>

#include "runtime/plan/bound/bound.h"

namespace cairn::plan {

// The ops of a problem up to the one after which the copies home take longest, with what stands before them and after.
class Ends {
 public:
  // A problem with values that may live in tiers.
  explicit Ends(const Problem&);

  // No plan's seconds are fewer, without what living in a tier costs. earliest: as of lower_bound_seconds_behind(), from which
  // those may be
  // taken off; empty: zeros.
  // 0: nothing is waited for at the ends.
  double least_seconds(int64_t budget_bytes, const std::vector<double>& earliest,
                       int threads = kMostThreads) const;

 private:
  // Copies of one direction go one after the other on each link.
  // Both say by how many seconds the plan is longer than its ops.
  double find_tail(const Problem&);
  double find_earliest(const Problem&);

  double behind_ = 0;  // seconds of copies after op last_
  size_t last_ = 0;
  std::vector<double> earliest_;  // per op up to last_
  std::optional<Problem> problem_;
  std::optional<Index> index_;
  HomeReads homes_;
};

}  // namespace cairn::plan
