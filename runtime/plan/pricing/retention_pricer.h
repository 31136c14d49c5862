// Seconds and memory of retention points without making their Sequence: faster, with the same results to the last
// bit. It looks only at ops for which something is recomputed. The rest of the sequence is as if everything were
// kept, and its sums are known. Where a value is follows from the interval and the last use in it, so nothing is
// updated from op to op. The next price continues the last one: ops before the first question about a changed
// interval are not looked at again.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/plan/pricing/sequence.h"

namespace cairn::plan {

class RetentionPricer {
 public:
  struct Price {
    bool valid = false;   // the result of Sequencer::run()
    bool copies = false;  // a value is offloaded and fetched: seconds and peak are lower limits
    double seconds = 0;   // of the sequence; of a schedule, at least
    int64_t peak_bytes = 0;
    int64_t work = 0;  // the work that Sequencer::run() would have counted
  };

  RetentionPricer(const Problem&, const Index&, const Intervals&);
  Price operator()(const RetentionPoints&, const Sequencer::Limits&);

  // Of the last valid price. live: bytes per item, as Sequence::live. trace: all that the sequence depends on besides
  // the problem. Equal traces mean equal sequences, residencies and links.
  std::span<const int64_t> live() const { return {live_.data(), static_cast<size_t>(items_)}; }
  const std::vector<int32_t>& trace() const { return trace_; }
  // Sequence::excess() of the sequence.
  double excess(int64_t budget) const;

 private:
  struct Op {
    int32_t inputs, outputs, end;  // ranges in uses_
    bool recomputable;
    double seconds;
    int64_t workspace;
    int64_t crossing;  // bytes alive between the op before it and this one, if everything is kept
    int64_t live;      // bytes alive while it runs, workspace included, if everything is kept
  };
  struct Use {
    int32_t value;
    int32_t ends;         // the interval that ends with it; of outputs -1
    int32_t first, last;  // first and last interval of the value
  };
  // The last use in an interval, if that is not its first use.
  struct Used {
    int32_t anchor = -1, item = 0;
    uint32_t group = 0;
  };
  struct Group {
    int32_t anchor, begin, end;  // the op, and the range of its runs in group_ops_
  };
  // All that is looked up about an interval, next to each other in memory.
  struct Interval {
    int32_t begin, end;
    int64_t bytes;
    Used used;
    int32_t first_query = kNever;  // the first op asked about by residence()
  };
  // Where a value is in an interval between two uses.
  enum class Residence : uint8_t { kKept, kDropped, kOffloaded };
  // The state before an active op, so that it can be restored.
  struct Mark {
    int32_t anchor, extra;
    double again;
    bool copies;
    size_t groups, group_ops, trace, changes, uses, queries;
  };

  int32_t take(const RetentionPoints&);
  void activate(int32_t interval, int32_t point, int32_t count);
  void activate_op(int32_t op, int32_t count);
  void mark(int32_t anchor);
  void back_to(int32_t anchor);
  bool within(const Sequencer::Limits&) const;
  bool look_at(int32_t anchor, const Sequencer::Limits&, Price&);
  int32_t interval_at(const Use& use, int32_t anchor) const;
  Residence residence(int32_t interval, int32_t anchor);
  void want(int32_t value);
  void change(int32_t item, int64_t bytes);
  bool collect(int32_t anchor);
  bool make_group(int32_t anchor);
  void use_again(int32_t use, int32_t interval, int32_t anchor, int32_t item, bool output);
  bool use_at_end(int32_t use, int32_t anchor, int32_t item);
  void add_up(Price&);

  const Index& index_;
  const Intervals& intervals_;
  std::vector<Op> ops_;
  std::vector<Use> uses_;
  std::vector<Interval> all_;       // the intervals, with what is looked up about them
  std::vector<int32_t> table_;      // interval_at() of small problems: per value, per op
  std::vector<int32_t> collected_;  // interval_at() per use of what the present group makes
  std::vector<double> sums_;        // seconds of the first ops, added in order
  // The state after the last call, which the next call continues.
  RetentionPoints t_;
  int32_t finished_ = 0;     // all ops before this one were looked at; kNever: all ops
  Price price_;              // of the retention points, if all ops were looked at
  std::vector<Mark> marks_;  // one per active op looked at
  uint32_t group_ = 0;
  int32_t extra_ = 0, placed_ = 0;
  int64_t items_ = 0;
  bool copies_ = false;
  double again_ = 0;
  std::vector<uint64_t> active_;       // a bit per op: a value may be missing, or be fetched, there
  std::vector<int32_t> active_count_;  // per op: the number of intervals that make it active
  std::vector<std::pair<int32_t, int32_t>> early_;     // (op, interval), sorted
  std::vector<int32_t> place_;                         // per op: its item in the sequence
  std::vector<std::pair<int32_t, Used>> uses_undone_;  // intervals, and what their `used` was before
  std::vector<int32_t> queries_;                       // intervals that it asked about, in order
  std::vector<uint32_t> seen_op_;                      // per op: the last group that wanted it
  std::vector<int32_t> open_, made_, group_ops_, trace_;
  std::vector<Group> groups_;
  std::vector<int64_t> change_;  // of bytes alive per item, compared with keeping everything
  std::vector<std::pair<int32_t, int64_t>> changes_;
  std::vector<int64_t> live_;
};

}  // namespace cairn::plan
