// From a sequence to a list of steps without offsets: inserts frees, and copies timed on the lanes of the links.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/plan/pricing/sequence.h"

namespace cairn::plan {

// Copies are hidden by compute if values may be on the device a little longer: after the last forward use while they
// are copied out, and before the reader once they are fetched. A pace says how many bytes of such values there may
// be. 0 takes least memory: every copy stalls compute. limit_bytes: copies stall compute only where all that is alive
// would exceed the limit.
struct Pace {
  int64_t window_bytes = std::numeric_limits<int64_t>::max(),
          limit_bytes = std::numeric_limits<int64_t>::max();

  bool operator==(const Pace&) const = default;
};

struct Schedule {
  std::vector<Step> steps;  // their offsets are not set
  double seconds = 0;       // by the event simulation
  int64_t peak_bytes = 0;   // most bytes alive at once, persistent values and workspace included
  int32_t peak_step = -1;   // at which step they are alive
  int32_t peak_item = -1;   // the run there, an item of the sequence
  std::vector<int64_t> tier_peak_bytes;
};

// with_steps: false for its price alone.
Schedule make_schedule(const Problem&, const Index&, const Sequence&, Pace, bool with_steps = true);

}  // namespace cairn::plan
