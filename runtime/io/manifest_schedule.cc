#include "runtime/io/manifest_schedule.h"

namespace cairn::io {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// The number that says all of a schedule; kListedSchedules if there is none.
uint32_t number_of(const step::Schedule& schedule) {
  const step::Stage& stage = schedule.stages.at(0);
  if (schedule.stages.size() > 1 || stage.steps > 0) return kListedSchedules;
  uint32_t number = 0;
  while (number < kListedSchedules && stage.row != &step::schedules()[number]) ++number;
  const bool defaults = number < kListedSchedules && stage.values == step::Stage(stage.row->name).values;
  return defaults ? number : kListedSchedules;
}

Offset<fb::ManifestSchedule> encode_stage(FlatBufferBuilder& to, const step::Stage& stage) {
  std::vector<Offset<fb::ManifestScheduleValue>> values;
  for (size_t p = 0; p < stage.values.size(); ++p) {
    const step::ScheduleParameter& parameter = stage.row->parameters[p];
    const double value = stage.values[p];
    if (parameter.range == 'l' || value == parameter.value) continue;
    const auto word = parameter.words.empty()
                          ? Offset<flatbuffers::String>()
                          : to.CreateString(parameter.words.at(static_cast<size_t>(value)));
    values.push_back(fb::CreateManifestScheduleValue(to, to.CreateString(parameter.name), value, word));
  }
  for (const step::ScheduleParameter& parameter : stage.row->parameters)
    if (parameter.range == 'l')
      for (double element : stage.list)
        values.push_back(fb::CreateManifestScheduleValue(to, to.CreateString(parameter.name), element));
  return fb::CreateManifestSchedule(to, to.CreateString(stage.row->name), stage.steps,
                                    to.CreateVector(values));
}

step::Stage decode_stage(const fb::ManifestSchedule& from, Budget& budget) {
  step::Stage stage(text_of(from.name(), budget), from.steps());
  const uint64_t values = count_of(from.values(), kMaxValues, "parameters of a schedule", budget);
  for (uint32_t i = 0; i < values; ++i) {
    const fb::ManifestScheduleValue& value = *from.values()->Get(i);
    const std::string name = text_of(value.name(), budget);
    if (value.word() != nullptr) {
      stage.set(name, text_of(value.word(), budget));
    } else {
      stage.set(name, value.value());
    }
  }
  return stage;
}

}  // namespace

SavedSchedules encode_schedules(FlatBufferBuilder& to, const step::Schedule& schedule) {
  if (const uint32_t number = number_of(schedule); number < kListedSchedules) return {.number = number};
  std::vector<Offset<fb::ManifestSchedule>> list;
  for (const step::Stage& stage : schedule.stages) list.push_back(encode_stage(to, stage));
  return {.number = kListedSchedules, .list = to.CreateVector(list)};
}

std::vector<step::Stage> decode_schedules(const fb::ManifestOptions& from, Budget& budget) {
  const uint64_t count = count_of(from.schedules(), kMaxValues, "schedules", budget);
  require(from.schedule() < kListedSchedules || (from.schedule() == kListedSchedules && count > 0),
          Code::kCorruptFile, "checkpoint: unknown schedule ", from.schedule());
  if (from.schedule() < kListedSchedules) return {step::Stage(step::schedules()[from.schedule()].name)};
  std::vector<step::Stage> stages;
  try {
    for (uint32_t i = 0; i < count; ++i) stages.push_back(decode_stage(*from.schedules()->Get(i), budget));
    step::check_values({.stages = stages});
  } catch (const Error& error) {
    fail_as(Code::kCorruptFile, error, "checkpoint: ");
  }
  return stages;
}

}  // namespace cairn::io
