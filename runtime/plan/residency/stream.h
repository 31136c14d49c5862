// Puts the copies of values that live in their tier into a plan that was made without them. Copies that the plan has already get new
// times, as both share the links.
#pragma once
#include <cstdint>

#include "runtime/plan/plan.h"
#include "runtime/plan/residency/residence.h"

namespace cairn::plan {

struct Streaming {
  // Bytes that may be alive at once. Mandatory is what each op uses while it runs; beyond it, values are fetched
  // ahead, kept between two uses, and leave late.
  int64_t capacity_bytes = 0;
  // Two uses that are no further apart have the value on the device in between, where there is room.
  double keep_seconds = 0;
  // Of the capacity, per step of the plan, bytes that only what is mandatory may use; empty: none.
  std::vector<int64_t> reserved_bytes = {};
};

// The plan is of without_homes(resolved). With room for more than each op needs (capacity_bytes > 0), values that the plan
// sends over a link may stay where there is room for them after all. The steps have no offsets of their own.
struct Streamed {
  std::vector<Step> steps;
  double seconds = 0;
  size_t kept = 0;                 // gaps between two uses in which values stay
  std::vector<int32_t> from = {};  // per step: the plan's step that it is, or comes before
};
// less: of the same plan and capacity with less to keep, or nullptr. Where no gap more is kept, this is the same.
Streamed stream_homes(const Problem& resolved, const Plan& plan, const Streaming&,
                      const Streamed* less = nullptr);

// Ops that the plan runs again after a value that may live in a tier that they read was changed by a later op: it may not.
std::vector<int32_t> stale_runs(const Problem&, const Plan& plan);

}  // namespace cairn::plan
