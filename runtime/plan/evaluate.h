// Prices retention points: exactly as the plan made from them will be judged, but for the layout.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include "runtime/plan/rules.h"
#include "runtime/plan/schedule.h"

namespace cairn::plan {

struct Cost {
  bool valid = false;
  double seconds = 0;
  int64_t peak_bytes = 0;
  uint64_t order = 0;  // a hash of the sequence: plans that differ in it may differ in their arenas
};

class Evaluator {
 public:
  Evaluator(const Problem& p, const Index& index, const Intervals& intervals)
      : p_(p), index_(index), sequencer_(p, index, intervals) {}

  // `sequence` is the retention points' afterwards.
  // Gives up, as if invalid, once it is sure to take more than `max_seconds`.
  Cost operator()(const RetentionPoints& t, Pace pace, Sequence& sequence,
                  double max_seconds = std::numeric_limits<double>::infinity());
  Schedule schedule(const RetentionPoints& t, Pace pace, Sequence& sequence);
  // Runs priced so far: the measure of how much a search has spent, the same on every machine.
  int64_t work() const { return sequencer_.work() + scheduled_; }

 private:
  int64_t max_items() const { return std::max(kMaxRuns * static_cast<int64_t>(p_.ops.size()), kSmallRuns); }
  static constexpr int64_t kMaxRuns = 40,
                           kSmallRuns = 200'000;  // per op, on average, that a plan may have; in all

  const Problem& p_;
  const Index& index_;
  Sequencer sequencer_;
  int64_t scheduled_ = 0;
};

}  // namespace cairn::plan
