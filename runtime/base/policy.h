// What a region asks of the planner for the values in it; `cairn_policy_t` of the C ABI has the same numbers.
#pragma once
#include <cstdint>

namespace cairn {

enum class Policy : uint32_t { kPlannerDecides = 0, kKeep = 1, kRecompute = 2, kOffload = 3 };

}  // namespace cairn
