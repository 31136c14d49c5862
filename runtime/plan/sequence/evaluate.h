// Prices retention points: exactly as the plan made from them will be judged, but for the layout.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include "runtime/plan/rules.h"
#include "runtime/plan/sequence/retention_pricer.h"
#include "runtime/plan/sequence/schedule.h"

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

  // `sequence` is the retention points' afterwards.
  // Gives up, as if invalid, once it is sure to take more than `max_seconds`.
  Cost operator()(const RetentionPoints& t, Pace pace, Sequence& sequence,
                  double max_seconds = std::numeric_limits<double>::infinity());
  // The same in two parts, of which the first is quick. It counts all of the work. Where there are copies it
  // gives the least that its seconds and its peak can be; else what they are.
  RetentionPricer::Price price(const RetentionPoints& t,
                               double max_seconds = std::numeric_limits<double>::infinity());
  Cost after_price(const RetentionPoints& t, Pace pace, Sequence& sequence);
  // RetentionPricer::trace() of plans; counts no work.
  const std::vector<int32_t>& trace_of(const RetentionPoints& t);
  // Of the last price.
  const RetentionPricer& priced() const { return pricer_; }
  Schedule schedule(const RetentionPoints& t, Pace pace, Sequence& sequence);
  // Runs priced so far: the measure of how much a search has spent, the same on every machine.
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
