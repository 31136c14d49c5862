// The formulas of schedules.def: pure functions of a step, in double precision. Internal to runtime/step.
#pragma once
#include <optional>
#include <span>

namespace cairn::step {

// What the update of one step gets.
struct SchedulePoint {
  double rate = 0;
  std::optional<double> momentum = {};  // of SGD, or beta1 of Adam; none: the group's own holds
};

// What a formula reads. `values` are in the order of the row's parameters, words by their numbers.
struct Stretch {
  double rate = 0, minimum_rate = 0;
  double length = 0;  // in steps; 0: unknown
  double warmup = 0;  // steps of the warm-up before the first schedule
  std::span<const double> values = {};
  std::span<const double> list = {};  // of the parameter that is a list
};

using Formula = SchedulePoint (*)(const Stretch& stretch,
                                  double t);  // t: steps from the first of the stretch
using LeastSteps = double (*)(std::span<const double> values);
using ScheduleCheck = void (*)(std::span<const double> values);  // kInvalidArgument

namespace formulas {
#define SCHEDULE(id, parameters, traits, formula, least, check, description) \
  SchedulePoint formula(const Stretch& stretch, double t);
#include "runtime/step/schedules.def"
#undef SCHEDULE
}  // namespace formulas

namespace least_steps {
double no_end(std::span<const double> values);
double one_step(std::span<const double> values);
double two_steps(std::span<const double> values);
double cosine_steps(std::span<const double> values);
double wsd_steps(std::span<const double> values);
}  // namespace least_steps

namespace schedule_rules {
void nothing(std::span<const double> values);
void onecycle_rules(std::span<const double> values);
}  // namespace schedule_rules

}  // namespace cairn::step
