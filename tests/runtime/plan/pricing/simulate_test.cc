#include <gtest/gtest.h>

#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

auto adds_to(Plan& plan) {
  return [&plan](StepKind kind, int32_t index, int32_t tier = -1) {
    Step& s = plan.steps.emplace_back();
    s.kind = kind;
    s.index = index;
    s.tier = tier;
  };
}

TEST(Simulate, LanesRunBesideEachOther) {
  Problem p = chain(4);
  p.links.push_back({"host", 0, 6400, 3200, 1, 1 << 20});
  const auto step = [](StepKind kind, int32_t index, int32_t tier = -1) {
    Step s;
    s.kind = kind;
    s.index = index;
    s.tier = tier;
    return s;
  };
  Plan plan;
  plan.steps = {step(StepKind::kRun, 0),     step(StepKind::kOut, 1, 0), step(StepKind::kRun, 1),
                step(StepKind::kWaitOut, 1), step(StepKind::kFree, 1),   step(StepKind::kIn, 1, 0),
                step(StepKind::kWaitIn, 1),  step(StepKind::kRun, 1)};
  const Timeline line = simulate(p, plan);
  EXPECT_DOUBLE_EQ(line.seconds, 5);
  EXPECT_DOUBLE_EQ(line.stall_seconds, 2);
  EXPECT_DOUBLE_EQ(line.recompute_seconds, 1);
  EXPECT_EQ(line.step_span[1], (std::array<double, 2>{1, 2}));
  EXPECT_EQ(line.step_span[5], (std::array<double, 2>{2, 4}));
  EXPECT_EQ(line.step_span[6], (std::array<double, 2>{2, 4}));
  EXPECT_EQ(line.step_span[7], (std::array<double, 2>{4, 5}));
}

// A value that is not there in its tier before 3.5 is copied from then on, and what comes behind it in the queue waits, too.
TEST(Simulate, CopiesWaitForWhatTheyCopy) {
  Problem p = chain(4);
  p.links.push_back({"host", 0, 6400, 3200, 1, 1 << 20});
  Plan plan;
  const auto step = adds_to(plan);
  step(StepKind::kRun, 0);
  step(StepKind::kIn, 1, 0);
  step(StepKind::kIn, 2, 0);
  step(StepKind::kRun, 1);
  step(StepKind::kWaitIn, 2);
  std::vector<double> ready(p.values.size(), 0);
  ready[1] = 3.5;
  const Timeline line = simulate(p, plan, ready);
  EXPECT_DOUBLE_EQ(line.step_span[1][1], 5.5);
  EXPECT_EQ(line.step_span[2], (std::array<double, 2>{5.5, 7.5}));
  EXPECT_DOUBLE_EQ(line.seconds, 7.5);
  ready[1] = 0.5;
  EXPECT_DOUBLE_EQ(simulate(p, plan, ready).seconds, simulate(p, plan).seconds);
}

TEST(Simulate, ACopyNobodyWaitsForStillEndsTheStep) {
  Problem p = chain(1);
  p.links.push_back({"host", 0, 640, 640, 1, 1 << 20});
  Plan plan;
  plan.steps.resize(2);
  plan.steps[0].index = 0;
  plan.steps[1] = {StepKind::kOut, 1, 0, -1, 0, {}};
  const Timeline line = simulate(p, plan);
  EXPECT_DOUBLE_EQ(line.seconds, 11);
  EXPECT_DOUBLE_EQ(line.stall_seconds, 10);
}

// The same steps as in LanesRunBesideEachOther, with half the speed for both: out and the second op take 2 seconds.
TEST(Simulate, ALinkThatTakesFromKernels) {
  Problem p = chain(4);
  p.links.push_back({"host", 0, 6400, 3200, 1, 1 << 20, .5, .5});
  Plan plan;
  const auto step = adds_to(plan);
  step(StepKind::kRun, 0);
  step(StepKind::kOut, 1, 0);
  step(StepKind::kRun, 1);
  step(StepKind::kWaitOut, 1);
  step(StepKind::kFree, 1);
  step(StepKind::kIn, 1, 0);
  step(StepKind::kWaitIn, 1);
  const Timeline line = simulate(p, plan);
  EXPECT_EQ(line.step_span[1], (std::array<double, 2>{1, 3}));
  EXPECT_EQ(line.step_span[2], (std::array<double, 2>{1, 3}));
  EXPECT_EQ(line.step_span[5], (std::array<double, 2>{3, 5}));
  EXPECT_DOUBLE_EQ(line.seconds, 5);
  EXPECT_DOUBLE_EQ(line.stall_seconds, 2);
}

// What the solver says of its plan is what the event simulation says, also where copies take from kernels; and a plan
// without copies takes as long as ever.
TEST(Simulate, TheSolverKnowsOfCompetition) {
  Problem p = chain(12);
  p.links.push_back({"host", 0, 6400, 6400, 1, 1 << 20});
  const Plan whole = solve(p);
  p.budget_bytes = whole.arena_bytes * 7 / 10;
  const Plan alone = solve(p);
  ASSERT_GT(alone.totals.offload_bytes[0], 0);
  p.links[0].busy_factor = .8;
  p.links[0].busy_rate_factor = .7;
  const Plan beside = solve(p);
  EXPECT_EQ(violation(p, beside), "");
  EXPECT_DOUBLE_EQ(simulate(p, beside).seconds, beside.predicted_seconds);
  EXPECT_GT(beside.predicted_seconds, alone.predicted_seconds);
  EXPECT_GE(beside.predicted_seconds, beside.bound_seconds);
  p.budget_bytes = 0;
  EXPECT_EQ(solve(p).predicted_seconds, whole.predicted_seconds);
}

}  // namespace
}  // namespace cairn::plan
