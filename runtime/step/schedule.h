// Learning-rate schedules: pure functions of the step, so that resuming needs no state.
#pragma once
#include <cstdint>
#include <string_view>

namespace cairn::step {

enum class ScheduleKind : uint32_t { kConstant = 0, kCosine = 1, kLinear = 2 };

struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double rate = 3e-4;
  uint64_t warmup_steps = 0;  // linear from rate / warmup to rate
  uint64_t total_steps = 0;   // kCosine, kLinear: where the minimum is reached
  double minimum_rate = 0;
};

// Rate of the update that makes step `step` (0-based) complete.
double rate_at(const Schedule& schedule, uint64_t step);
ScheduleKind schedule_from_name(std::string_view name);  // kInvalidArgument lists the names

}  // namespace cairn::step
