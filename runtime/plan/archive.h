// The good plans that searches have met.
#pragma once
#include <cstdint>
#include <iterator>
#include <map>

#include "runtime/plan/evaluate.h"

namespace cairn::plan {

struct Candidate {
  Thresholds thresholds;
  Pace pace;
  Cost cost;
};

// Plans that no other beats in both peak and seconds.
class Archive {
 public:
  void add(const Thresholds& t, Pace pace, const Cost& cost) {
    auto at = plans_.upper_bound(cost.peak_bytes);
    if (at != plans_.begin() && std::prev(at)->second.cost.seconds <= cost.seconds) return;
    while (at != plans_.end() && at->second.cost.seconds >= cost.seconds) at = plans_.erase(at);
    if (at != plans_.begin() && std::prev(at)->first == cost.peak_bytes) plans_.erase(std::prev(at));
    plans_.emplace(cost.peak_bytes, Candidate{t, pace, cost});
  }
  // The fastest whose peak fits; nullptr if none does.
  const Candidate* within(int64_t peak) const {
    const auto at = plans_.upper_bound(peak);
    return at == plans_.begin() ? nullptr : &std::prev(at)->second;
  }
  const std::map<int64_t, Candidate>& plans() const { return plans_; }
  bool empty() const { return plans_.empty(); }

 private:
  std::map<int64_t, Candidate> plans_;  // by rising peak, and so by falling seconds
};

}  // namespace cairn::plan
