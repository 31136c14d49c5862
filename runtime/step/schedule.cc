#include "runtime/step/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/step/settings.h"

namespace cairn::step {
namespace {

constexpr int kDigits = 15;  // of a double that are always exact in a text

// For messages: a warm-up in tokens may take more steps than can be counted.
uint64_t steps(double whole) {
  return whole < 0x1p64 ? static_cast<uint64_t>(whole) : std::numeric_limits<uint64_t>::max();
}

// Steps from a stage's first to its end, which has no sign yet: below 0 where the stages before leave none.
double length_of(const Schedule& s, size_t stage, double before) {
  if (s.stages[stage].steps > 0) return static_cast<double>(s.stages[stage].steps);
  return s.total_steps > 0 ? static_cast<double>(s.total_steps) - before : 0.0;
}

Stretch stretch_of(const Schedule& s, size_t stage, double before) {
  return {.rate = s.rate,
          .minimum_rate = s.minimum_rate,
          .length = std::max(0.0, length_of(s, stage, before)),
          .warmup = static_cast<double>(s.warmup_steps),
          .values = s.stages[stage].values,
          .list = s.stages[stage].list};
}

}  // namespace

SchedulePoint schedule_at(const Schedule& s, uint64_t step) {
  if (step < s.warmup_steps)
    return {s.rate * static_cast<double>(step + 1) / static_cast<double>(s.warmup_steps)};
  uint64_t t = step - s.warmup_steps;
  size_t stage = 0;
  for (; stage + 1 < s.stages.size() && t >= s.stages[stage].steps; ++stage) t -= s.stages[stage].steps;
  const auto at = static_cast<double>(t);
  return s.stages[stage].row->formula(stretch_of(s, stage, static_cast<double>(step) - at), at);
}

double rate_at(const Schedule& schedule, uint64_t step) { return schedule_at(schedule, step).rate; }

bool cycles_momentum(const Stage& stage) {
  return stage.row->formula({.rate = 1, .length = 2, .values = stage.values, .list = stage.list}, 0)
      .momentum.has_value();
}

void check_values(const Schedule& s) {
  if (s.rate != 0) check_setting("rate", s.rate);
  check_setting("minimum_rate", s.minimum_rate);
  require(!s.stages.empty(), Code::kInvalidArgument, "there is no schedule; 'constant' is the plainest one");
  for (size_t i = 0; i < s.stages.size(); ++i) {
    const Stage& stage = s.stages[i];
    const ScheduleRow& row = *stage.row;
    for (size_t p = 0; p < row.parameters.size(); ++p) {
      const ScheduleParameter& parameter = row.parameters[p];
      if (parameter.range != 'l') {
        if (parameter.words.empty()) Stage(row.name).set(parameter.name, stage.values.at(p));
        continue;
      }
      require(!stage.list.empty(), Code::kInvalidArgument, row.name, " needs ", parameter.name,
              ": the steps at which it changes, ascending");
      for (size_t k = 1; k < stage.list.size(); ++k)
        require(stage.list[k] > stage.list[k - 1], Code::kInvalidArgument, row.name, ": ", parameter.name,
                " has ", steps(stage.list[k]), " after ", steps(stage.list[k - 1]),
                "; every one must be larger");
    }
    row.check(stage.values);
    require(stage.steps > 0 || i + 1 == s.stages.size(), Code::kInvalidArgument, "schedule ", i + 1, " of ",
            s.stages.size(), ", ", row.name, ", says no steps; only the last one may leave them out");
    require(s.warmup_steps == 0 || i > 0 || !row.is(SCHEDULE_OWN_WARMUP), Code::kInvalidArgument, row.name,
            " climbs by itself (pct_start), and the warm-up before it is of ", s.warmup_steps,
            " steps; leave that 0");
  }
}

void check_schedule(const Schedule& s) {
  check_values(s);
  check_setting("rate", s.rate);
  auto before = static_cast<double>(s.warmup_steps);
  for (size_t i = 0; i < s.stages.size(); ++i) {
    const Stage& stage = s.stages[i];
    const double least = stage.row->least(stage.values), length = length_of(s, i, before);
    require(least == 0 || stage.steps > 0 || s.total_steps > 0, Code::kInvalidArgument, "the schedule ",
            stage.row->name, " needs total_steps: the step at which it ends");
    require(least == 0 || length >= least || stage.steps > 0, Code::kInvalidArgument,
            "the schedule ends at step ", s.total_steps, ", and its warm-up",
            i > 0 ? " and the schedules before take " : " takes ", steps(before), " steps: ", stage.row->name,
            " needs at least ", steps(least), " more");
    require(least == 0 || length >= least, Code::kInvalidArgument, "the schedule ", stage.row->name, " has ",
            steps(length), " steps; it needs at least ", steps(least));
    before += static_cast<double>(stage.steps);
  }
}

std::string schedule_text(const Schedule& s) {
  std::string text;
  for (const Stage& stage : s.stages) {
    const Stage defaults(stage.row->name);
    text += cat(text.empty() ? "" : ",", stage.row->name);
    if (stage.steps > 0) text += cat(':', stage.steps);
    for (size_t p = 0; p < stage.values.size(); ++p) {
      const ScheduleParameter& parameter = stage.row->parameters[p];
      if (stage.values[p] == defaults.values[p]) continue;
      text += cat(':', parameter.name, '=');
      if (parameter.words.empty()) {
        append_text(text, stage.values[p], kDigits);
      } else {
        text += parameter.words.at(static_cast<size_t>(stage.values[p]));
      }
    }
    for (const ScheduleParameter& parameter : stage.row->parameters)
      if (parameter.range == 'l')
        for (size_t k = 0; k < stage.list.size(); ++k) {
          text += k == 0 ? cat(':', parameter.name, '=') : "/";
          append_text(text, stage.list[k], kDigits);
        }
  }
  return text;
}

}  // namespace cairn::step
