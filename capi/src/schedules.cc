// Chapter 6: the schedules that steppers know, and what a host says of them.
#include "capi/src/schedules.h"

#include <limits>
#include <string>

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace step = cairn::step;

namespace {

constexpr uint64_t kMaxSchedules = 65536;  // more is a mistake, as are more values of one

struct ScheduleEntry {
  std::string name, parameters, description;
  bool ends;
};

std::string default_of(const step::ScheduleParameter& parameter) {
  if (parameter.range == 'l') return "";
  if (parameter.words.empty()) return cairn::cat(parameter.value);
  std::string words;
  for (std::string_view word : parameter.words) words += cairn::cat(words.empty() ? "" : "|", word);
  return words;
}

std::vector<ScheduleEntry> make_schedule_entries() {
  std::vector<ScheduleEntry> list;
  for (const step::ScheduleRow& row : step::schedules()) {
    ScheduleEntry entry{std::string(row.name), "", std::string(row.description),
                        row.least(step::Stage(row.name).values) > 0};
    for (const step::ScheduleParameter& parameter : row.parameters)
      entry.parameters +=
          cairn::cat(entry.parameters.empty() ? "" : " ", parameter.name, '=', default_of(parameter));
    list.push_back(std::move(entry));
  }
  return list;
}

const std::vector<ScheduleEntry>& schedule_entries() {
  static const std::vector<ScheduleEntry> list = make_schedule_entries();
  return list;
}

step::Stage read_stage(const cairn_schedule_t& given, const std::string& place) {
  not_null(given.name, place + ".name");
  step::Stage stage(given.name, given.steps);
  require(given.value_count <= kMaxSchedules, Code::kInvalidArgument, place, ".value_count is ",
          given.value_count, "; more than ", kMaxSchedules, " are a mistake");
  if (given.value_count > 0) not_null(given.values, place + ".values");
  for (uint64_t i = 0; i < given.value_count; ++i) {
    const cairn_schedule_value_t& value = given.values[i];
    not_null(value.name, cairn::cat(place, ".values[", i, "].name"));
    if (value.word != nullptr) {
      stage.set(value.name, value.word);
    } else {
      stage.set(value.name, value.value);
    }
  }
  return stage;
}

std::vector<step::Stage> read_stages(const cairn_stepper_options_t& o) {
  in_enum(o.schedule, CAIRN_SCHEDULE_LINEAR, "options.schedule");
  if (o.schedule_count == 0) return {step::Stage(step::schedules()[o.schedule].name)};
  require(o.schedule == 0, Code::kInvalidArgument, "options.schedule is ", o.schedule, ", and there are ",
          o.schedule_count, " options.schedules, too; leave one out");
  not_null(o.schedules, "options.schedules");
  require(o.schedule_count <= kMaxSchedules, Code::kInvalidArgument, "options.schedule_count is ",
          o.schedule_count, "; more than ", kMaxSchedules, " are a mistake");
  std::vector<step::Stage> stages;
  for (uint64_t i = 0; i < o.schedule_count; ++i)
    stages.push_back(read_stage(o.schedules[i], cairn::cat("options.schedules[", i, ']')));
  return stages;
}

uint64_t read_warmup(const cairn_stepper_options_t& o) {
  if (o.warmup_units == 0) return o.warmup_steps;
  require(o.warmup_steps == 0, Code::kInvalidArgument, "options.warmup_steps is ", o.warmup_steps,
          " and options.warmup_units ", o.warmup_units, "; leave one 0");
  require(o.step_units > 0, Code::kInvalidArgument, "options.warmup_units is ", o.warmup_units,
          ", and options.step_units, what of them a step takes, is 0");
  return o.warmup_units / o.step_units + (o.warmup_units % o.step_units != 0 ? 1 : 0);
}

}  // namespace

namespace cairn::capi {

step::Schedule read_schedule(const cairn_stepper_options_t& o) {
  step::Schedule schedule{.stages = read_stages(o),
                          .rate = o.rate,
                          .warmup_steps = read_warmup(o),
                          .total_steps = o.total_steps,
                          .minimum_rate = o.minimum_rate};
  step::check_schedule(schedule);
  return schedule;
}

}  // namespace cairn::capi

cairn_status_t cairn_schedule_describe(size_t index, cairn_schedule_info_t* out_info, cairn_error_t* error) {
  return guard(error, [&] {
    const OutStruct out(out_info, "out_info");
    require(index < schedule_entries().size(), Code::kNotFound, "there is no schedule number ", index,
            "; there are ", schedule_entries().size());
    const ScheduleEntry& e = schedule_entries()[index];
    cairn_schedule_info_t info = CAIRN_SCHEDULE_INFO_INIT;
    info.name = e.name.c_str();
    info.parameters = e.parameters.c_str();
    info.description = e.description.c_str();
    info.ends = e.ends ? 1 : 0;
    out.write(info);
  });
}

cairn_status_t cairn_schedule_rates(const cairn_stepper_options_t* options, uint64_t first, size_t count,
                                    double* out_rates, double* out_momenta, cairn_error_t* error) {
  return guard(error, [&] {
    const step::Schedule schedule =
        read_schedule(read_struct(options, CAIRN_STEPPER_OPTIONS_INIT, "options"));
    array_not_null(out_rates, count, "out_rates");
    require(first <= UINT64_MAX - count, Code::kInvalidArgument, "first is ", first, ", and ", count,
            " steps from there are more than can be counted");
    for (size_t i = 0; i < count; ++i) {
      const step::SchedulePoint point = step::schedule_at(schedule, first + i);
      out_rates[i] = point.rate;
      if (out_momenta != nullptr)
        out_momenta[i] = point.momentum.value_or(std::numeric_limits<double>::quiet_NaN());
    }
  });
}
