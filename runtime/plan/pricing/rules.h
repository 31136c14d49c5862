// What the policies of regions decide, and what is left to the planner.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/pricing/sequence.h"

namespace cairn::plan {

// The innermost region with an explicit policy decides about a value. RECOMPUTE: the value is recomputed, unless a
// forward op of another region reads it: then it is kept, as an input from which the region is recomputed. OFFLOAD:
// saved values of a page or more are offloaded while the tier has room.
struct Rules {
  Rules(const Problem&, const Index&, const Intervals&);

  std::vector<Policy> policy;  // per value: the explicit policy, kPlannerDecides if none
  // Per interval: whether the planner may choose its retention point, may have the value recomputed, may offload it.
  std::vector<uint8_t> free, remade, sent;
  std::vector<int32_t> across;  // per value: its interval between forward and backward, -1: none
  RetentionPoints base;         // everything is kept, except where policies say otherwise

  // Whether the retention point is one of the interval's choices.
  bool allows(int32_t interval, int32_t retention_point) const {
    const auto g = static_cast<size_t>(interval);
    if (retention_point == base[g]) return true;
    return retention_point < 0 ? sent[g] : retention_point > 0 ? remade[g] : free[g];
  }
};

}  // namespace cairn::plan
