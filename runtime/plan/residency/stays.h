// The residencies of values that are copied over links: the steps in which each is on the device, and when its copies
// begin.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/plan/residency/residence.h"

namespace cairn::plan {

// One residency of a value. Steps are those of the plan without tier-resident values. first, last: the runs that use
// the value.
struct Stay {
  int32_t value, link;
  int32_t first, last;
  bool fetched;          // its first use reads the fetched value
  int32_t changed = -1;  // the last run that changes it: it is copied out after that; -1: none
  int32_t issue = -1;    // its fetch starts before this step
};

// The times that one simulation of all steps passes to the next one.
struct StreamTimes {
  std::vector<double> start;  // per step of the plan without tier-resident values, and the end
  std::vector<double> gone;   // per residency: the end of its copy out
};

class Stays {
 public:
  // Of the plan's own values, some that it offloads are among the residencies: retimed() says which. reserved_bytes:
  // subtracted from the capacity, per step of the plan; empty: none.
  Stays(const Problem& resolved, const Plan&, int64_t capacity_bytes,
        std::vector<int64_t> reserved_bytes = {});

  // Keeps values on the device between two uses that are no further apart than this, where there is room. The
  // shortest gaps come first, as they take the least memory for the same bytes saved on the link. Returns the number
  // of gaps.
  size_t keep_between_uses(double keep_seconds);
  // Chooses when each fetch starts. last: the times of the simulation before, if there was one. False if every fetch
  // is where it was.
  bool place_fetches(const StreamTimes* last);

  const std::vector<Stay>& all() const { return stays_; }
  bool retimed(int32_t value) const { return retimed_[static_cast<size_t>(value)]; }
  // Per step: bytes alive, fetched values included, without values that are being copied out.
  const std::vector<int64_t>& alive() const { return alive_; }
  // Bytes that may be alive at a step.
  int64_t room(int32_t s) const {
    return capacity_ - (reserved_.empty() ? 0 : reserved_[static_cast<size_t>(s)]);
  }

 private:
  void timeline();
  void find_homes();
  void find_copied();
  void memory();
  bool is_run(int32_t s) const { return plan_.steps[static_cast<size_t>(s)].kind == StepKind::kRun; }
  int64_t bytes(const Stay& stay) const { return p_.values[static_cast<size_t>(stay.value)].bytes; }
  double copy_seconds(const Stay&) const;

  const Problem& p_;
  const Plan& plan_;
  const int64_t capacity_;
  const std::vector<int64_t> reserved_;
  const std::vector<std::vector<HomeUse>> uses_;  // per op: its uses of tier-resident values
  std::vector<bool> retimed_;
  std::vector<double> start_;          // per step, if no value is waited for, and the end
  std::vector<int64_t> base_, alive_;  // per step: without and with what is fetched ahead
  std::vector<Stay> stays_;            // in the order of their first use
};

}  // namespace cairn::plan
