// From a choice per value to the list of steps, without offsets. The choice says what happens to a value
// between its last forward use and its first use afterwards; the schedule decides when. Every op is run again
// at most once: a value made again stays until its last use.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {

// Per value: kKeepIt, kRemake, or the index of a link to offload over.
using Choice = int16_t;
inline constexpr Choice kKeepIt = -1, kRemake = -2;
using Choices = std::vector<Choice>;

// How many bytes of copies may be on the device beyond their need (leaving after their last forward use, or
// fetched before their reader) so that copies hide under compute. 0: every copy stalls compute, the least
// memory.
struct Pace {
  int64_t window_bytes = std::numeric_limits<int64_t>::max();
};

struct Schedule {
  std::vector<Step> steps;  // offsets not set
  double seconds = 0;       // of the event simulation
  int64_t peak_bytes = 0;   // most bytes alive at once, persistent values and workspace included
  int32_t peak_step = -1;   // where they are alive
  std::vector<int64_t> tier_peak_bytes;
};

// What remains of `choices` once impossible ones are dropped (persistent values, ops that may not run again,
// values nobody needs later), and which ops run again.
struct Resolved {
  Choices choices;
  std::vector<uint8_t> rerun;       // per op
  std::vector<int32_t> later_uses;  // per value: reads by backward ops and by ops run again
};
Resolved resolve(const Problem&, const Index&, Choices);

Schedule make_schedule(const Problem&, const Index&, const Choices&, Pace);

}  // namespace cairn::plan
