// Which values are kept on the device between their uses, and the order of runs that follows. Seconds and memory of a
// plan without copies are exact here; schedule.h adds copies on the lanes of the links.
//
// A value is used by the op that makes it and by its readers, in the problem's order. Between two uses lies an
// interval; after the last use comes the tail. The retention point of an interval says what happens to the value in
// it: after the runs for op j the value is kept if j >= the retention point, else it is dropped. So 0 always keeps
// it, and kNever recomputes it for each use. If the retention point is an op inside the interval, the value is
// dropped first, and is kept once it is recomputed for that op or a later one: a checkpoint of a deeper level. A
// negative number offloads the value over a link.
//
// An input that is missing when an op is due is recomputed right before the op, with all that this needs, each op at
// most once. An early retention point has the value recomputed right before the op that it names, as if that op read
// it, because the inputs are on the device then.
#pragma once
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/plan/index.h"

namespace cairn::plan {

using RetentionPoints = std::vector<int32_t>;
inline constexpr int32_t kKeepIt = 0, kNever = std::numeric_limits<int32_t>::max();
inline constexpr int32_t kEarly =
    1 << 30;  // a bit that marks early retention points; there are fewer ops than that
inline constexpr int32_t early(int32_t op) { return op | kEarly; }
inline constexpr bool is_early(int32_t retention_point) {
  return retention_point >= kEarly && retention_point != kNever;
}
// The op from whose runs on the value is kept. Not for retention points that name a link.
inline constexpr int32_t held_from(int32_t retention_point) { return retention_point & (kEarly - 1); }
inline constexpr int32_t over_link(int32_t link) { return -1 - link; }
inline constexpr int32_t link_of(int32_t retention_point) { return -1 - retention_point; }

// The intervals of all values, numbered value by value. Values made by no op have none.
struct Intervals {
  Intervals(const Problem&, const Index&);

  struct Interval {
    int32_t value, begin, end;  // begin, end: the ops that use the value; end is kNever for the tail
  };
  std::vector<Interval> all;
  std::vector<int32_t> first;  // the intervals of value v are all[first[v]] ... all[first[v + 1] - 1]

  // The interval of v that follows the runs for op j; -1 if v is not made yet.
  int32_t at(int32_t v, int32_t j) const;
  // The interval of v between forward and backward; -1 if v is not saved for backward.
  int32_t across(const Problem&, const Index&, int32_t v) const;
  // Every value is kept until its last reader. A value that cannot be recomputed is kept as long as an op could need
  // it. A value recomputed in backward is kept until its last use, so that each op runs at most twice.
  RetentionPoints keep_all(const Problem&) const;
};

// A stretch of time for which a value is on the device. It begins and ends at items of the sequence that use the
// value.
struct Residency {
  int32_t value, begin, end;
  int16_t from = -1, to = -1;  // the links that it is fetched and offloaded over; -1: none
};

struct Sequence {
  std::vector<int32_t> ops;     // the items: ops in order of execution, with recomputed ones
  std::vector<int32_t> anchor;  // per item: the op that it runs for, itself unless it is recomputed
  std::vector<Residency> residencies;
  std::vector<int64_t> live;  // per item: bytes alive while it runs, persistent values and workspace included
  double seconds = 0;         // of all items together
  int64_t peak_bytes = 0;
  int32_t peak_item = -1;

  // Bytes above a budget, summed over the items.
  double excess(int64_t budget) const;
};

// Makes sequences from retention points. Reuses its memory between calls; for one thread at a time.
class Sequencer {
 public:
  // A sequence with more items or seconds is given up.
  struct Limits {
    int64_t items = kNever;
    double seconds = std::numeric_limits<double>::infinity();
  };

  Sequencer(const Problem&, const Index&, const Intervals&);
  // False beyond the limits, or if an op would run again that may not.
  bool run(const RetentionPoints&, Sequence& out, const Limits&);
  bool run(const RetentionPoints& t, Sequence& out) { return run(t, out, Limits{}); }
  int64_t work() const { return work_; }  // items made so far, in all calls

 private:
  struct Row {
    int32_t inputs, outputs, end;  // ranges in touches_
    bool recomputable;
    double seconds;
  };
  struct State {
    int32_t residency;  // the value's present residency, -1: off the device
    int32_t interval;   // the interval after the last use so far
    int32_t seen;       // stamp of the group that used it last
    int32_t tier;       // the link over which it was offloaded, -1: none
    int32_t left;       // then: the residency that ended with the offload
  };

  bool collect();
  bool missing(int32_t v) const { return state_[v].residency < 0 && state_[v].tier < 0; }
  void note_early(const RetentionPoints&);
  void want(int32_t v);
  void never_mind(State&, Sequence& out);
  void run_group(int32_t anchor, Sequence& out);
  void use(int32_t v, int32_t item, Sequence& out);
  void measure(Sequence& out) const;

  const Problem& p_;
  const Index& index_;
  const Intervals& intervals_;
  std::vector<Row> rows_;
  std::vector<int32_t> uses_;  // inputs and outputs of all ops
  std::vector<State> start_, state_;
  int64_t work_ = 0;
  int32_t stamp_ = 0;
  std::vector<int32_t> seen_op_, group_, open_, used_;
  std::vector<std::pair<int32_t, int32_t>> early_;  // (op, interval), by op
};

}  // namespace cairn::plan
