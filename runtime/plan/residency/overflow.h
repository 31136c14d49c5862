// The offsets of a plan with copies may end above the budget. Where they do, and only there, copies have to leave
// more room.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"

namespace cairn::plan {

// Raises reserved_bytes by what ends above the budget. reserved_bytes: per step of the plan without copies. from: per
// step of the plan with them, as Streamed::from.
void reserve_overflow(const Problem& resolved, const Plan& with, const std::vector<int32_t>& from,
                      int64_t budget_bytes, std::vector<int64_t>& reserved_bytes);

}  // namespace cairn::plan
