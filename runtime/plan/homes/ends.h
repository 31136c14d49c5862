// What a plan waits for at its ends: before its first ops for values that have to live at home, behind its last ones for those to be
// back. A bound that the program points of runtime/plan/bound do not know.
#pragma once
#include <optional>
#include <vector>

#include "runtime/plan/bound/bound.h"

namespace cairn::plan {

// The ops of a problem up to the one behind which the copies home take longest, with what stands before them and behind.
class Ends {
 public:
  // A problem with homes.
  explicit Ends(const Problem&);

  // No plan's seconds are fewer, without what living at home costs. earliest: as of lower_bound_seconds_behind(), from which those may be
  // taken off; empty: zeros.
  // 0: nothing is waited for at the ends.
  double least_seconds(int64_t budget_bytes, const std::vector<double>& earliest) const;

 private:
  // Copies of one direction go one after the other on each link.
  // Both say by how many seconds the plan is longer than its ops.
  double find_tail(const Problem&);
  double find_earliest(const Problem&);

  double behind_ = 0;  // seconds of copies behind op last_
  size_t last_ = 0;
  std::vector<double> earliest_;  // per op up to last_
  std::optional<Problem> problem_;
  std::optional<Index> index_;
  HomeReads homes_;
};

}  // namespace cairn::plan
