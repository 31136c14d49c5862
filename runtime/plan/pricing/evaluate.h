// The seconds and the peak of the plan that retention points describe. Both are exact. Only the arena of the plan may
// be higher than its peak.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include "runtime/plan/pricing/retention_pricer.h"
#include "runtime/plan/pricing/rules.h"
#include "runtime/plan/pricing/schedule.h"

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
      : p_(p), index_(index), sequencer_(p, index, intervals), pricer_(p, index, intervals) {}

  // Also makes the sequence of the retention points. Gives up, as if they were invalid, once more than `max_seconds`
  // are certain.
  Cost operator()(const RetentionPoints& t, Pace pace, Sequence& sequence,
                  double max_seconds = std::numeric_limits<double>::infinity());
  // The same in two parts. price() is quick and counts all of the work. Its seconds and peak are exact without
  // copies, and lower limits with copies. after_price() makes the sequence and simulates the copies.
  RetentionPricer::Price price(const RetentionPoints& t,
                               double max_seconds = std::numeric_limits<double>::infinity());
  Cost after_price(const RetentionPoints& t, Pace pace, Sequence& sequence);
  // RetentionPricer::trace() of retention points; counts no work.
  const std::vector<int32_t>& trace_of(const RetentionPoints& t);
  // Details of the last price().
  const RetentionPricer& priced() const { return pricer_; }
  Schedule schedule(const RetentionPoints& t, Pace pace, Sequence& sequence);
  // Runs of ops priced so far. Searches are limited by this number, so that they are the same on every machine.
  int64_t work() const { return work_; }

 private:
  Cost cost_of(const Sequence&, Pace) const;
  int64_t max_items() const { return std::max(kMaxRuns * static_cast<int64_t>(p_.ops.size()), kSmallRuns); }
  static constexpr int64_t kMaxRuns = 40,
                           kSmallRuns = 200'000;  // per op, on average, that a plan may have; in all

  const Problem& p_;
  const Index& index_;
  Sequencer sequencer_;
  RetentionPricer pricer_;
  int64_t work_ = 0;
};

}  // namespace cairn::plan
