// Learning-rate schedules: pure functions of the step, so that resuming needs no state. Rows are in
// schedules.def.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/step/schedule_formulas.h"

namespace cairn::step {

enum ScheduleTrait : uint32_t {
  SCHEDULE_OWN_WARMUP = 1u << 0,  // climbs by itself
};

struct ScheduleParameter {
  std::string_view name;
  char range;  // of runtime/ops/ranges.h; e: one of `words`
  double value;
  std::vector<std::string_view> words = {};  // range e: by their numbers
};

struct ScheduleRow {
  std::string_view name;
  std::vector<ScheduleParameter> parameters;
  uint32_t traits;
  Formula formula;
  LeastSteps least;
  ScheduleCheck check;
  std::string_view description;

  bool is(ScheduleTrait t) const { return traits & t; }
};

std::span<const ScheduleRow> schedules();
// kInvalidArgument lists those known.
const ScheduleRow& schedule(std::string_view name);

// One schedule of those that follow each other.
struct Stage {
  const ScheduleRow* row;
  uint64_t steps;              // before the next one begins; 0, only of the last: up to Schedule::total_steps
  std::vector<double> values;  // in the order of the row's parameters
  std::vector<double> list = {};

  Stage(std::string_view name = "constant", uint64_t steps = 0);  // with the defaults
  // kInvalidArgument: the schedule has no such parameter, or it does not take that value. A list gains an
  // element.
  Stage& set(std::string_view name, double value);
  Stage& set(std::string_view name, std::string_view word);
};

struct Schedule {
  std::vector<Stage> stages = {Stage()};
  double rate = 3e-4;
  uint64_t warmup_steps = 0;  // linear from rate / warmup to rate, before the first stage
  uint64_t total_steps = 0;   // where the last stage ends, warm-up and all stages included
  double minimum_rate = 0;
};

// Of the update that makes step `step` (0-based) complete.
SchedulePoint schedule_at(const Schedule& schedule, uint64_t step);
double rate_at(const Schedule& schedule, uint64_t step);
bool cycles_momentum(const Stage& stage);  // whether its points have one

// kInvalidArgument: a number is out of range, or parameters do not go together.
void check_values(const Schedule& schedule);
// The same of a schedule that somebody asks for, which must mean something, too. kInvalidArgument: the rate
// is 0, or warm-up and stages take more steps than there are. Checkpoints of earlier versions may have such.
void check_schedule(const Schedule& schedule);

// As a text: "cosine", "linear:100:start_factor=0.1,multistep:milestones=300/600"; parameters that are not
// the defaults.
std::string schedule_text(const Schedule& schedule);

}  // namespace cairn::step
