// What the regions' policies fix, and what is left to the planner.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/sequence/sequence.h"

namespace cairn::plan {

// The innermost region with an explicit policy decides about a value. RECOMPUTE: made again, unless another
// region's forward op reads it (that is what the region is recomputed for). OFFLOAD: saved values of a page
// or more leave while the tier has room.
struct Rules {
  Rules(const Problem&, const Index&, const Intervals&);

  std::vector<Policy> policy;  // per value: the explicit policy, kPlannerDecides if none
  // Per interval: the planner may choose its retention point, which may have the value made again, or sent over a link.
  std::vector<uint8_t> free, remade, sent;
  std::vector<int32_t> across;  // per value: its interval around the beginning of backward, -1: none
  RetentionPoints base;         // keep everything but what policies say

  // Whether the retention point is one of the interval's choices.
  bool allows(int32_t interval, int32_t retention_point) const {
    const auto g = static_cast<size_t>(interval);
    if (retention_point == base[g]) return true;
    return retention_point < 0 ? sent[g] : retention_point > 0 ? remade[g] : free[g];
  }
};

}  // namespace cairn::plan
