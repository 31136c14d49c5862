// A simple planner whose plans are starting points for the searches. It evicts values one after the other, the one
// that costs least to recompute per byte first, until everything fits. Then it keeps again the values for which there
// is room.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/plan/local_search/archive.h"

namespace cairn::plan {

class Greedy {
 public:
  struct Price {
    double exponent;
    bool alone, to_fit;
  };
  Greedy(const Problem&, const Index&, const Intervals&, const Rules&, Evaluator&, Archive&);

  // Adds plans whose peak is within the budget to the archive: one per way to price values, as many as about `work`
  // runs allow.
  void run(int64_t budget, int64_t work);

 private:
  Candidate everything_kept() const;
  bool evict(Candidate&, int64_t budget, const Price&, int64_t until);
  void keep_again(Candidate&, int64_t budget, bool alone, int64_t until);
  double recompute_seconds(const Candidate&, int32_t value, bool alone);
  int32_t interval_in_backward(int32_t value) const;
  int32_t kept(int32_t interval) const {
    return intervals_.all[interval].end == kNever ? kKeepIt : rules_.base[interval];
  }
  bool measure(Candidate&);

  const Problem& p_;
  const Index& index_;
  const Intervals& intervals_;
  const Rules& rules_;
  Evaluator& evaluate_;
  Archive& archive_;
  Sequence sequence_;
  std::vector<int32_t> evicted_;  // evicted intervals, in order
  std::vector<int32_t> todo_;     // ops still to be looked at by recompute_seconds()
  std::vector<int64_t> seen_;     // per op: the question for which it was looked at last
  int64_t question_ = 0;
};

}  // namespace cairn::plan
