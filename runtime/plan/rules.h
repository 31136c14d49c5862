// What the regions' policies fix, and what is left to the planner.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/sequence.h"

namespace cairn::plan {

// The innermost region with an explicit policy decides about a value. RECOMPUTE: made again, unless another
// region's forward op reads it (that is what the region is recomputed for). OFFLOAD: saved values of a page
// or more leave while the tier has room.
struct Rules {
  Rules(const Problem&, const Index&, const Gaps&);

  std::vector<Policy> policy;   // per value: the explicit policy, kPlannerDecides if none
  std::vector<uint8_t> free;    // per gap: the planner may choose its threshold
  std::vector<int32_t> across;  // per value: its gap around the turnaround, -1: none
  Thresholds base;              // keep everything but what policies say
};

}  // namespace cairn::plan
