#include "runtime/step/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/base/error.h"

namespace cairn::step {
namespace {
constexpr std::string_view kNames[] = {"constant", "cosine", "linear"};
}

double rate_at(const Schedule& s, uint64_t step) {
  if (step < s.warmup_steps)
    return s.rate * static_cast<double>(step + 1) / static_cast<double>(s.warmup_steps);
  if (s.kind == ScheduleKind::kConstant) return s.rate;
  const double span =
      s.total_steps > s.warmup_steps ? static_cast<double>(s.total_steps - s.warmup_steps) : 1.0;
  const double progress = std::min(1.0, static_cast<double>(step - s.warmup_steps) / span);
  const double share =
      s.kind == ScheduleKind::kCosine ? 0.5 * (1.0 + std::cos(std::numbers::pi * progress)) : 1.0 - progress;
  return s.minimum_rate + (s.rate - s.minimum_rate) * share;
}

ScheduleKind schedule_from_name(std::string_view name) {
  for (uint32_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<ScheduleKind>(i);
  fail(Code::kInvalidArgument, "unknown schedule '", name, "'; known: constant, cosine, linear");
}

}  // namespace cairn::step
