#include "runtime/step/schedule.h"

#include <cmath>
#include <functional>
#include <limits>

#include "runtime/base/error.h"

namespace cairn::step {
namespace {

Schedule one(std::string_view name, double rate = 1.0) { return {.stages = {Stage(name)}, .rate = rate}; }

// What a change of a schedule that is fine is refused with.
std::string refused(Schedule s, const std::function<void(Schedule&)>& change) {
  try {
    change(s);
    check_schedule(s);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "taken";
}

TEST(Schedule, WarmupIsLinearAndReachesTheRate) {
  Schedule s;
  s.rate = 1.0;
  s.warmup_steps = 4;
  EXPECT_DOUBLE_EQ(rate_at(s, 0), 0.25);
  EXPECT_DOUBLE_EQ(rate_at(s, 3), 1.0);
  EXPECT_DOUBLE_EQ(rate_at(s, 1000), 1.0);
}

TEST(Schedule, CosineGoesFromRateToMinimumAndStays) {
  Schedule s = one("cosine");
  s.minimum_rate = 0.1;
  s.warmup_steps = 10;
  s.total_steps = 110;
  EXPECT_DOUBLE_EQ(rate_at(s, 10), 1.0);
  EXPECT_NEAR(rate_at(s, 60), 0.55, 1e-12);
  EXPECT_NEAR(rate_at(s, 110), 0.1, 1e-12);
  EXPECT_NEAR(rate_at(s, 5000), 0.1, 1e-12);
  for (uint64_t i = 10; i < 110; ++i) EXPECT_GE(rate_at(s, i), rate_at(s, i + 1));
}

TEST(Schedule, LinearFallsEvenly) {
  Schedule s = one("linear");
  s.total_steps = 100;
  EXPECT_DOUBLE_EQ(rate_at(s, 0), 1.0);
  EXPECT_DOUBLE_EQ(rate_at(s, 25), 0.75);
  EXPECT_DOUBLE_EQ(rate_at(s, 100), 0.0);
}

// The traces of PyTorch are of what happens up to the end; this is what follows, and the steps where rules
// change.
TEST(Schedule, EverythingStaysWhereItEnds) {
  for (const ScheduleRow& row : schedules()) {
    Schedule s = one(row.name);
    s.total_steps = 50;
    s.minimum_rate = 0.125;
    if (row.name == "step") s.stages[0].set("step_size", 10);
    if (row.name == "multistep") s.stages[0].set("milestones", 10).set("milestones", 20);
    check_schedule(s);
    if (row.least(s.stages[0].values) == 0) continue;
    const double end = row.name == "onecycle" ? 1.0 / 25 / 10000 : 0.125;
    for (uint64_t step : {50ull, 51ull, 1000ull, 1ull << 60})
      EXPECT_NEAR(rate_at(s, step), end, 1e-15) << row.name;
    EXPECT_GT(rate_at(s, 30), end) << row.name;
  }
}

TEST(Schedule, CyclesAndStepsBeginOnTheStep) {
  Schedule s = one("cosine");
  s.stages[0].set("first_cycle", 10).set("cycle_multiplier", 3);
  for (uint64_t step : {0ull, 10ull, 40ull, 130ull, 400ull}) EXPECT_EQ(rate_at(s, step), 1.0) << step;
  for (uint64_t step : {9ull, 39ull, 129ull, 399ull}) EXPECT_LT(rate_at(s, step), 0.03) << step;
  EXPECT_GE(rate_at(s, (1ull << 60) + 12345), 0.0);
  s = one("step");
  s.stages[0].set("step_size", 5).set("gamma", 0.5);
  EXPECT_EQ(rate_at(s, 4), 1.0);
  EXPECT_EQ(rate_at(s, 5), 0.5);
  EXPECT_EQ(rate_at(s, 14), 0.25);
  s = one("multistep");
  s.stages[0].set("milestones", 3).set("milestones", 4);
  EXPECT_EQ(rate_at(s, 2), 1.0);
  EXPECT_EQ(rate_at(s, 3), 0.1);
  EXPECT_DOUBLE_EQ(rate_at(s, 4), 0.01);
}

TEST(Schedule, StagesFollowEachOtherAfterTheWarmup) {
  Schedule s{.stages = {Stage("linear", 10), Stage("constant", 5), Stage("polynomial")}, .rate = 2.0};
  s.stages[0].set("start_factor", 0.5).set("end_factor", 1.0);
  s.stages[1].set("factor", 0.25);
  s.warmup_steps = 20;
  s.total_steps = 135;
  check_schedule(s);
  EXPECT_EQ(schedule_text(s), "linear:10:start_factor=0.5:end_factor=1,constant:5:factor=0.25,polynomial");
  EXPECT_EQ(rate_at(s, 19), 2.0);  // the warm-up's last
  EXPECT_EQ(rate_at(s, 20), 1.0);
  EXPECT_DOUBLE_EQ(rate_at(s, 29), 1.9);
  EXPECT_EQ(rate_at(s, 30), 0.5);
  EXPECT_EQ(rate_at(s, 34), 0.5);
  EXPECT_EQ(rate_at(s, 35), 2.0);
  EXPECT_DOUBLE_EQ(rate_at(s, 85), 1.0);  // half of the 100 steps that are left
  EXPECT_EQ(rate_at(s, 135), 0.0);
}

TEST(Schedule, OnlyOnecycleHasAMomentum) {
  for (const ScheduleRow& row : schedules()) {
    const Stage stage(row.name);
    EXPECT_EQ(cycles_momentum(stage), row.name == "onecycle");
  }
  EXPECT_FALSE(cycles_momentum(Stage("onecycle").set("cycle_momentum", "false")));
  Schedule s = one("onecycle");
  s.total_steps = 100;
  EXPECT_DOUBLE_EQ(schedule_at(s, 0).momentum.value(), 0.95);
  EXPECT_DOUBLE_EQ(schedule_at(s, 29).momentum.value(), 0.85);
  EXPECT_DOUBLE_EQ(schedule_at(s, 29).rate, 1.0);
  EXPECT_DOUBLE_EQ(schedule_at(s, 99).momentum.value(), 0.95);
}

TEST(Schedule, BadOnesSayWhatIsWanted) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                   kInf = std::numeric_limits<double>::infinity();
  const Schedule constant = one("constant");
  Schedule cosine = one("cosine");
  cosine.total_steps = 100;
  struct Row {
    Schedule from;
    std::function<void(Schedule&)> change;
    const char* says;
  };
  const auto set = [](const char* name, auto value) {
    return [name, value](Schedule& s) { s.stages[0].set(name, value); };
  };
  const Row rows[] = {
      {constant, [](Schedule& s) { s.rate = 0; }, "rate is 0; it must be above 0"},
      {constant, [](Schedule& s) { s.rate = -1e-3; }, "rate is -0.001"},
      {constant, [](Schedule& s) { s.rate = kNan; }, "rate is nan"},
      {constant, [](Schedule& s) { s.rate = kInf; }, "rate is inf"},
      {constant, [](Schedule& s) { s.minimum_rate = -1; }, "minimum_rate is -1"},
      {constant, [](Schedule& s) { s.minimum_rate = kNan; }, "minimum_rate is nan"},
      {constant, [](Schedule& s) { s.stages = {Stage("cosin")}; },
       "unknown schedule 'cosin'; known: constant, cosine"},
      {constant, set("gamma", 0.5),
       "constant has no parameter 'gamma'; it has: factor; it is of step, multistep"},
      {constant, set("fact", 0.5), "constant has no parameter 'fact'; it has: factor"},
      {constant, set("factor", 0.0), "constant: factor is 0; it must be above 0"},
      {constant, [](Schedule& s) { s.stages.clear(); }, "there is no schedule"},
      {constant, [](Schedule& s) { s.stages.emplace_back("constant"); },
       "schedule 1 of 2, constant, says no steps"},
      {cosine, [](Schedule& s) { s.total_steps = 0; }, "the schedule cosine needs total_steps"},
      {cosine, [](Schedule& s) { s.warmup_steps = 101; },
       "ends at step 100, and its warm-up takes 101 steps"},
      {cosine, [](Schedule& s) { s.warmup_steps = 100; }, "cosine needs at least 1 more"},
      {cosine, set("first_cycle", 1.5), "first_cycle is 1.5; it must be a whole number from 0"},
      {cosine, set("cycle_multiplier", 0.0), "cycle_multiplier is 0; it must be a whole number from 1"},
      {cosine, set("first_cycle", "ten"), "first_cycle is 'ten'; it takes a number"},
      {one("step"), [](Schedule&) {}, "step: step_size is 0; it must be a whole number from 1"},
      {one("step"), set("gamma", 1.5), "gamma is 1.5; it must be above 0, and at most 1"},
      {one("step"), set("gamma", 0.0), "gamma is 0;"},
      {one("step"), set("gamma", kNan), "gamma is nan;"},
      {one("multistep"), [](Schedule&) {}, "multistep needs milestones"},
      {one("multistep"), set("milestones", 0.0), "milestones is 0; it must be whole numbers from 1"},
      {one("multistep"), [](Schedule& s) { s.stages[0].set("milestones", 50).set("milestones", 50); },
       "milestones has 50 after 50; every one must be larger"},
      {one("polynomial"), set("power", -1.0), "power is -1; it must be above 0"},
      {one("wsd"), set("decay_shape", "square"),
       "decay_shape is 'square'; it must be one of: linear, cosine, sqrt"},
      {one("wsd"), set("decay_shape", 1.0), "decay_shape is 1; it must be one of: linear"},
  };
  for (const Row& row : rows) {
    const std::string said = refused(row.from, row.change);
    EXPECT_NE(said.find(row.says), std::string::npos) << row.says << "\n" << said;
  }
}

TEST(Schedule, OnecycleAndWsdNeedRoom) {
  Schedule s = one("onecycle");
  s.total_steps = 1;
  EXPECT_NE(refused(s, [](Schedule&) {}).find("onecycle needs at least 2"), std::string::npos);
  s.total_steps = 100;
  EXPECT_EQ(refused(s, [](Schedule&) {}), "taken");
  EXPECT_NE(refused(s, [](Schedule& c) { c.warmup_steps = 5; }).find("climbs by itself"), std::string::npos);
  EXPECT_NE(
      refused(s, [](Schedule& c) { c.stages[0].set("base_momentum", 0.97); }).find("above max_momentum"),
      std::string::npos);
  EXPECT_NE(refused(s, [](Schedule& c) { c.stages[0].set("three_phase", "true").set("pct_start", 0.6); })
                .find("at most 0.5"),
            std::string::npos);
  EXPECT_NE(refused(s, [](Schedule& c) { c.stages[0].set("pct_start", 1.1); }).find("pct_start is 1.1"),
            std::string::npos);
  s = one("wsd");
  s.total_steps = 100;
  s.stages[0].set("decay_steps", 100);
  EXPECT_EQ(refused(s, [](Schedule&) {}), "taken");
  EXPECT_NE(refused(s, [](Schedule& c) { c.warmup_steps = 1; }).find("wsd needs at least 100 more"),
            std::string::npos);
  s = {.stages = {Stage("wsd", 30).set("decay_steps", 31), Stage("constant")}};
  EXPECT_NE(refused(s, [](Schedule&) {}).find("wsd has 30 steps; it needs at least 31"), std::string::npos);
}

}  // namespace
}  // namespace cairn::step
