// Schedules against 1000-step traces of PyTorch's (make_schedules.py says what the lines are).
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/step/schedule.h"

namespace cairn::step {
namespace {

constexpr uint64_t kSteps = 1000, kEvery = 7;

// Double rounding: PyTorch multiplies from step to step, and its numbers drift by a few units a step.
constexpr double kRelative = 1e-12, kOfTheRate = 1e-14;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

Stage stage_of(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  Stage stage(parts.at(0));
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    const std::string name = parts[i].substr(0, equals), value = parts[i].substr(equals + 1);
    if (equals == std::string::npos) {
      stage.steps = std::stoull(parts[i]);
    } else if (value.find_first_not_of("0123456789.e-/") == std::string::npos) {
      for (const std::string& element : split(value, '/')) stage.set(name, std::stod(element));
    } else {
      stage.set(name, value);
    }
  }
  return stage;
}

Schedule schedule_of(const std::string& words) {
  Schedule s;
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    const std::string value = word.substr(word.find('=') + 1);
    if (word.starts_with("rate=")) {
      s.rate = std::stod(value);
    } else if (word.starts_with("warmup=")) {
      s.warmup_steps = std::stoull(value);
    } else if (word.starts_with("minimum_rate=")) {
      s.minimum_rate = std::stod(value);
    } else if (word.starts_with("steps=")) {
      s.total_steps = std::stoull(value);
    } else {
      s.stages.clear();
      for (const std::string& stage : split(word, ',')) s.stages.push_back(stage_of(stage));
    }
  }
  return s;
}

// The two sums, and every seventh value.
void expect_trace(const std::vector<double>& ours, std::istringstream& theirs, double scale,
                  const std::string& what) {
  const auto next = [&] {
    std::string hex;
    theirs >> hex;
    return std::strtod(hex.c_str(), nullptr);
  };
  double sum = 0, weighted = 0;
  for (size_t step = 0; step < ours.size(); ++step) {
    sum += ours[step];
    weighted += static_cast<double>(step) * ours[step];
  }
  const double their_sum = next(), their_weighted = next();
  EXPECT_NEAR(sum, their_sum, kRelative * their_sum) << what;
  EXPECT_NEAR(weighted, their_weighted, kRelative * their_weighted) << what;
  for (size_t step = 0; step < ours.size(); step += kEvery) {
    const double value = next();
    ASSERT_NEAR(ours[step], value, kRelative * std::abs(value) + kOfTheRate * scale)
        << what << ", step " << step;
  }
  EXPECT_TRUE(theirs) << what;
  std::string rest;
  EXPECT_FALSE(theirs >> rest) << what;
}

TEST(Schedules, EqualPyTorchOverAThousandSteps) {
  std::ifstream file(CAIRN_SOURCE_DIR "/tests/golden/data/schedules.txt");
  ASSERT_TRUE(file.good());
  std::string name;
  Schedule schedule;
  std::set<std::string_view> seen;
  int cases = 0, momenta = 0;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "case") {
      std::getline(line, name);
      schedule = schedule_of(name);
      check_schedule(schedule);
      for (const Stage& stage : schedule.stages) seen.insert(stage.row->name);
      ++cases;
      continue;
    }
    std::vector<double> ours;
    for (uint64_t step = 0; step < kSteps; ++step) {
      const SchedulePoint point = schedule_at(schedule, step);
      ours.push_back(word == "rate" ? point.rate : point.momentum.value());
    }
    momenta += word == "momentum" ? 1 : 0;
    expect_trace(ours, line, word == "rate" ? schedule.rate : 1.0, word + name);
  }
  EXPECT_GE(cases, 30);
  EXPECT_GE(momenta, 4);
  for (const ScheduleRow& row : schedules()) EXPECT_TRUE(seen.contains(row.name)) << row.name;
}

}  // namespace
}  // namespace cairn::step
