// Plans for graphs of any shape. Forward is cut into groups of ops where few bytes cross, in one value or many. C(s,
// t, room) is the least seconds for the backward of groups s to t - 1. For one group: all that its backward reads is
// recomputed, if the peak fits. For several groups: a cut k is chosen. Groups s to k - 1 run, and all that group k or
// later ones need of them is held. Then come C(k, t, less room) and C(s, k, room). A value that many groups read is
// held, and counted, once.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/plan/pricing/rules.h"

namespace cairn::plan {

class SegmentsTable;

class Segments {
 public:
  // groups: the most groups. possible() is false if there is nothing to cut, or no backward.
  Segments(const Problem&, const Index&, const Intervals&, const Rules&, int32_t groups);
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;
  ~Segments();

  bool possible() const { return !groups_.empty(); }
  // Retention points for about `room` bytes besides persistent values; nothing if there is no way. Peaks inside a
  // group are estimates: evaluate the result.
  std::optional<RetentionPoints> plan(int64_t room);

 private:
  // A way to run a group only once: some of its values are kept from forward on, the others are recomputed.
  struct Option {
    int64_t kept = 0;
    double seconds = 0;
    std::vector<int32_t> dropped;  // ops that run again
  };
  struct Group {
    int32_t begin = 0, end = 0;  // the group's forward ops
    int32_t back_begin = 0;      // the first op of backward from which no later group's values are needed
    double forward = 0;          // seconds of its ops
    double again = 0;            // of those that make values that its own backward reads
    int64_t pass = 0;            // most bytes of the group while it is passed through
    int64_t peak = 0;            // most bytes in its own backward, gradients included
    int64_t before = 0;          // bytes made by backward that are alive when its own backward begins
    std::vector<Option> options;
  };
  // A value that may be dropped, with the group that makes it and the last one that needs it.
  struct Member {
    int32_t value, made, needed;
    bool saved;  // read by the backward of the group that makes it
  };
  friend class SegmentsTable;

  void cut_forward(int32_t groups);
  void look_at_backward();
  void look_at_values();
  void look_inside(int32_t group);
  void add_options();
  int64_t& crossing(int32_t s, int32_t k) {
    return crossing_[static_cast<size_t>(s) * (groups_.size() + 1) + static_cast<size_t>(k)];
  }
  int64_t crossing(int32_t s, int32_t k) const { return const_cast<Segments*>(this)->crossing(s, k); }
  int32_t interval_of(int32_t v) const;
  int32_t count() const { return static_cast<int32_t>(groups_.size()); }

  const Problem& p_;
  const Index& index_;
  const Intervals& intervals_;
  const Rules& rules_;
  std::vector<Group> groups_;
  std::vector<int32_t> group_of_;  // per forward op: its group
  std::vector<int32_t> stage_;     // per op of backward: the last group that it or a later op reads
  std::vector<Member> members_;
  std::vector<int32_t> member_of_;           // per value, -1: always kept
  std::vector<int64_t> live_before_, live_;  // per op: bytes made by backward, before it and as it runs
  std::vector<int64_t> crossing_;  // per (s, k): bytes made in groups s to k - 1 that k or later ones need
  int64_t fixed_ = 0;              // bytes of values that are always kept
  std::vector<std::unique_ptr<SegmentsTable>> tables_;  // the ones used last, the latest first
};

}  // namespace cairn::plan
