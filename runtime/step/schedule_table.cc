// Parses the rows of schedules.def once; what the parameters of a stage may be.
#include <charconv>

#include "runtime/base/error.h"
#include "runtime/base/text/words.h"
#include "runtime/ops/ranges.h"
#include "runtime/step/schedule.h"

namespace cairn::step {
namespace {

struct Source {
  std::string_view name, parameters;
  uint32_t traits;
  Formula formula;
  LeastSteps least;
  ScheduleCheck check;
  std::string_view description;
};

constexpr Source kSources[] = {
#define SCHEDULE(id, parameters, traits, formula, least, check, description) \
  {#id, parameters, traits, formulas::formula, least_steps::least, schedule_rules::check, description},
#include "runtime/step/schedules.def"
#undef SCHEDULE
};

// As it is written in the table, whatever the host's locale.
double number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const size_t end = std::min(text.find('|'), text.size());
    words.push_back(text.substr(0, end));
    if (end == text.size()) return words;
    text.remove_prefix(end + 1);
  }
}

std::vector<ScheduleRow> build() {
  std::vector<ScheduleRow> rows;
  for (const Source& s : kSources) {
    ScheduleRow row{s.name, {}, s.traits, s.formula, s.least, s.check, s.description};
    for_words(s.parameters, [&](std::string_view word) {
      const size_t colon = word.find(':');
      ScheduleParameter parameter{word.substr(0, colon), word[colon + 1], 0};
      const std::string_view rest = word.substr(std::min(colon + 3, word.size()));
      if (parameter.range == 'e') {
        parameter.words = split(rest);
      } else {
        parameter.value = number(rest);
      }
      row.parameters.push_back(std::move(parameter));
    });
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string listed(std::span<const std::string_view> words) {
  std::string text;
  for (std::string_view word : words) text += cat(text.empty() ? "" : ", ", word);
  return text;
}

// Which other schedules have a parameter of that name, for messages; "" if none has.
std::string owners(std::string_view parameter) {
  std::string text;
  for (const ScheduleRow& row : schedules())
    for (const ScheduleParameter& p : row.parameters)
      if (p.name == parameter) text += cat(text.empty() ? "; it is of " : ", ", row.name);
  return text;
}

size_t parameter_of(const ScheduleRow& row, std::string_view name) {
  std::vector<std::string_view> known;
  for (size_t p = 0; p < row.parameters.size(); ++p) {
    if (row.parameters[p].name == name) return p;
    known.push_back(row.parameters[p].name);
  }
  fail(Code::kInvalidArgument, "the schedule ", row.name, " has no parameter '", name,
       "'; it has: ", listed(known), owners(name));
}

}  // namespace

std::span<const ScheduleRow> schedules() {
  static const std::vector<ScheduleRow> rows = build();
  return rows;
}

const ScheduleRow& schedule(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ScheduleRow& row : schedules()) {
    if (row.name == name) return row;
    known.push_back(row.name);
  }
  fail(Code::kInvalidArgument, "unknown schedule '", name, "'; known: ", listed(known));
}

Stage::Stage(std::string_view name, uint64_t steps_) : row(&schedule(name)), steps(steps_) {
  for (const ScheduleParameter& parameter : row->parameters) values.push_back(parameter.value);
}

Stage& Stage::set(std::string_view name, double value) {
  const size_t p = parameter_of(*row, name);
  const ScheduleParameter& parameter = row->parameters[p];
  require(parameter.words.empty(), Code::kInvalidArgument, row->name, ": ", name, " is ", value,
          "; it must be one of: ", listed(parameter.words));
  const ops::Range& range = ops::range(parameter.range);
  require(range.holds(value), Code::kInvalidArgument, row->name, ": ", name, " is ", value, "; it must be ",
          range.words);
  if (parameter.range == 'l') {
    list.push_back(value);
  } else {
    values[p] = value;
  }
  return *this;
}

Stage& Stage::set(std::string_view name, std::string_view word) {
  const size_t p = parameter_of(*row, name);
  const std::vector<std::string_view>& words = row->parameters[p].words;
  require(!words.empty(), Code::kInvalidArgument, row->name, ": ", name, " is '", word,
          "'; it takes a number");
  for (size_t w = 0; w < words.size(); ++w) {
    if (words[w] != word) continue;
    values[p] = static_cast<double>(w);
    return *this;
  }
  fail(Code::kInvalidArgument, row->name, ": ", name, " is '", word, "'; it must be one of: ", listed(words));
}

}  // namespace cairn::step
