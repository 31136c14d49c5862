// Inserts the copies of tier-resident values into a plan that was made without them. The plan's own copies get new
// times, as both share the links.
#pragma once
#include <cstdint>

#include "runtime/plan/plan.h"
#include "runtime/plan/residency/residence.h"

namespace cairn::plan {

struct Streaming {
  // Bytes that may be alive at once. The values that an op uses while it runs are mandatory. The rest serves to fetch
  // values ahead, to keep them between two uses, and to copy them out late.
  int64_t capacity_bytes = 0;
  // Between two uses that are no further apart, the value remains on the device, where there is room.
  double keep_seconds = 0;
  // Per step of the plan: bytes of the capacity that only mandatory values may use; empty: none.
  std::vector<int64_t> reserved_bytes = {};
};

// The plan is of without_homes(resolved). With room for more than each op needs (capacity_bytes > 0), values that the
// plan offloads may be kept where there is room after all. The steps have no offsets of their own.
struct Streamed {
  std::vector<Step> steps;
  double seconds = 0;
  size_t kept = 0;                 // gaps between two uses in which values are kept
  std::vector<int32_t> from = {};  // per step: the plan's step that it is, or that it precedes
};
// less: the result for the same plan and capacity with a smaller keep_seconds, or nullptr. If no further gap is kept,
// it is returned as it is.
Streamed stream_homes(const Problem& resolved, const Plan& plan, const Streaming&,
                      const Streamed* less = nullptr);

// Ops that the plan runs again although they read a value that a later op has changed since. They may not run again.
std::vector<int32_t> stale_runs(const Problem&, const Plan& plan);

}  // namespace cairn::plan
