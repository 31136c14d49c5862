// The stretches of time for which values that come and go over links are on the device, and when their copies begin.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/plan/residency/residence.h"

namespace cairn::plan {

// Steps are those of the plan without values that live in tiers; first and last are the runs that use the value.
struct Stay {
  int32_t value, link;
  int32_t first, last;
  bool fetched;          // its first use reads what comes in
  int32_t changed = -1;  // the last run that changes it: it goes out after that; -1: it need not
  int32_t issue = -1;    // the step that its fetch starts before
};

// What one simulation of all steps tells the next.
struct StreamTimes {
  std::vector<double> start;  // per step of the plan without values that live in tiers, and the end
  std::vector<double> gone;   // per stay: the end of its copy out
};

class Stays {
 public:
  // Of the plan's own values those that it sends over a link are among the stays: retimed() says which. reserved_bytes: of the
  // capacity, per step of the plan; empty: none.
  Stays(const Problem& resolved, const Plan&, int64_t capacity_bytes,
        std::vector<int64_t> reserved_bytes = {});

  // Two uses that are no further apart have the value on the device in between, where there is room: the shortest gaps
  // first, as they take the least memory for the same bytes saved on the link. Returns the number of gaps.
  size_t keep_between_uses(double keep_seconds);
  // last: of the simulation before, if there was one. False if every fetch is where it was.
  bool place_fetches(const StreamTimes* last);

  const std::vector<Stay>& all() const { return stays_; }
  bool retimed(int32_t value) const { return retimed_[static_cast<size_t>(value)]; }
  // Per step: bytes alive with fetched values, without what is on its way out.
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
  const std::vector<std::vector<HomeUse>> uses_;  // per op
  std::vector<bool> retimed_;
  std::vector<double> start_;          // per step, if no value is waited for, and the end
  std::vector<int64_t> base_, alive_;  // per step: without and with what is fetched ahead
  std::vector<Stay> stays_;            // by their first use
};

}  // namespace cairn::plan
