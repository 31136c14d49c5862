// The stretch of a plan from one of several program points to the next one: the least seconds of ops run again in it,
// where values have prices. A minimum cut, as in closure.h. The program is in README.md, "Several points".
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/bound/flow.h"
#include "runtime/plan/index.h"

namespace cairn::plan {

class Stretch {
 public:
  // From the first start of op `at` to that of op `next`; next: ops.size() for the end.
  Stretch(const Problem&, const Index&, int32_t at, int32_t next);

  // Where a value made before the stretch is, by the cut found last.
  enum class Place : uint8_t {
    kBusy,     // op `at` uses it, so it is on the device whatever it costs
    kStays,    // on the device at the program point
    kMade,     // recomputed in the stretch
    kMissing,  // neither on the device nor recomputed
  };
  // Each value that is kept on the device costs its charge. Each one that is missing in the stretch costs its fine; a
  // value that the stretch has to read is never missing. Returns the least sum of both and of the seconds of ops run
  // again, or a little less.
  double least(const std::vector<double>& charges, const std::vector<double>& fines);
  Place place(int32_t value) const;
  bool again(int32_t op) const;  // whether the cut found last runs it again

  int64_t busy_bytes() const { return busy_bytes_; }
  bool has(int32_t value) const { return values_[value].made; }  // made before the stretch
  bool busy(int32_t value) const { return values_[value].busy; }
  int64_t size() const { return static_cast<int64_t>(flow_.arcs().size()) + at_; }
  int64_t work() const { return work_ + flow_.work(); }  // arcs looked at so far

 private:
  struct Value {
    bool made = false, busy = false, read = false;  // read: the stretch needs it in any case
  };
  const Index* index_;
  int32_t at_;  // nodes: the ops before it, then all values
  std::vector<Value> values_;
  std::vector<double> seconds_;  // per op; infinite if it may not run again
  Flow flow_;
  std::vector<int32_t> to_maker_;  // per value: its arc to the maker, or -1
  int64_t busy_bytes_ = 0, work_ = 0;
  std::vector<bool> cheaper_missing_;
};

}  // namespace cairn::plan
