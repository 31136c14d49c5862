// Updates by the host's processors beside backward, each as soon as its gradient has left, and some in the next forward part: the same
// bits as within backward, on the device.
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "tests/support/seeds.h"
#include "updated_elsewhere.h"

namespace cairn::step {
namespace {

using namespace elsewhere;

class BesideBackward : public ::testing::TestWithParam<Case> {};

TEST_P(BesideBackward, ChangesNoBit) {
  Case unfused = GetParam();
  unfused.fused = false;
  Training behind(unfused, Defer::kNever), within(GetParam(), Defer::kNever),
      looked_at(GetParam(), Defer::kAlways), left_alone(GetParam(), Defer::kAlways);
  const engine::CompiledPlan& plan = left_alone.session->plan();
  ASSERT_EQ(within.session->plan().update_at(), Tier::kDevice);
  ASSERT_EQ(plan.update_at(), Tier::kHost);
  ASSERT_TRUE(plan.updates_beside_backward());
  const int64_t on_host = GetParam().on_host < 1 ? kLayers : 2 * kLayers + 1;
  ASSERT_EQ(plan.host_updated.size(), static_cast<size_t>(on_host)) << "what is a page or more";
  ASSERT_EQ(plan.deferred_updates(),
            static_cast<int64_t>(GetParam().deferred * static_cast<double>(on_host)));
  ASSERT_EQ(plan.streams_on_host(), GetParam().host_room > 0);
  for (int i = 0; i < 4; ++i) {
    const Report expected = behind.micro();
    for (Training* const training : {&within, &looked_at, &left_alone}) {
      const Report report = training->micro();
      EXPECT_EQ(report.loss, expected.loss) << i;
      EXPECT_EQ(report.gradient_norm, expected.gradient_norm) << i;
      EXPECT_EQ(report.outcome, Outcome::kApplied);
    }
    EXPECT_EQ(looked_at.values(), behind.values()) << i;
  }
  EXPECT_EQ(within.values(), behind.values());
  EXPECT_EQ(left_alone.values(), behind.values());
  EXPECT_EQ(parameter_digest(*left_alone.session), parameter_digest(*behind.session));
}

TEST_P(BesideBackward, TakesTheHyperParametersOfItsStep) {
  Training within(GetParam(), Defer::kNever), beside(GetParam(), Defer::kAlways);
  for (Training* const training : {&within, &beside}) {
    training->micro();
    training->stepper->set({.group = "", .name = "weight_decay", .value = 0.5});
    training->micro();
  }
  EXPECT_EQ(beside.values(), within.values());
}

TEST_P(BesideBackward, MeasuredPeaksAreThePlanned) {
  Training training(GetParam(), Defer::kAlways);
  for (int i = 0; i < 3; ++i) training.micro();
  const engine::CompiledPlan& plan = training.session->plan();
  EXPECT_EQ(plan::violation(plan.problem, plan.plan), "");
  const device::TierCount arena = training.session->count(Tier::kDevice);
  EXPECT_EQ(arena.peak_height_bytes, plan.plan.arena_bytes);
  EXPECT_EQ(arena.peak_live_bytes, plan.plan.device_peak_bytes);
  EXPECT_EQ(arena.live_bytes, plan.problem.persistent_bytes());
}

TEST_P(BesideBackward, AStepWhoseLossIsNotFiniteChangesNothing) {
  Training within(GetParam(), Defer::kNever), beside(GetParam(), Defer::kAlways);
  for (Training* const training : {&within, &beside}) {
    training->micro();
    EXPECT_EQ(training->micro(std::numeric_limits<float>::infinity()).outcome, Outcome::kSkippedNonFinite);
  }
  EXPECT_EQ(beside.values(), within.values());
  for (Training* const training : {&within, &beside}) training->micro();
  EXPECT_EQ(beside.values(), within.values());
}

// A cancel comes before the first update of a run, or the run is whole.
TEST_P(BesideBackward, ACancelLosesNothing) {
  Training within(GetParam(), Defer::kNever), beside(GetParam(), Defer::kAlways);
  within.micro();
  beside.micro();
  for (int round = 0; round < 24; ++round) {
    std::thread canceller([&, round] {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
      beside.session->cancel();
    });
    try {
      beside.micro();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kCancelled) << error.what();
    }
    canceller.join();
    beside.session->take_cancel();
    while (within.stepper->state().step < beside.stepper->state().step) within.micro();
    EXPECT_EQ(beside.values(), within.values()) << round;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Devices, BesideBackward,
    ::testing::ValuesIn(support::cases<Case>(
        {{.device = "cpu", .tier = Tier::kHost, .clip_norm = 0, .on_host = 1, .fused = true},
         {.device = "cpu",
          .tier = Tier::kHost,
          .clip_norm = 0,
          .on_host = 0.5,
          .fused = true,
          .deferred = 0.5},
         {.device = "cpu",
          .tier = Tier::kHost,
          .optimizer = "lion",
          .clip_norm = 0,
          .on_host = 1,
          .fused = true,
          .deferred = 1},
         {.device = "cpu",
          .tier = Tier::kHost,
          .amp = graph::AmpMode::kBf16,
          .clip_norm = 0,
          .on_host = 1,
          .fused = true},
         {.device = "cpu",
          .clip_norm = 0,
          .on_host = 1,
          .host_room = 700 << 10,
          .fused = true,
          .deferred = 0.4},
         {.device = "cpu",
          .optimizer = "lion",
          .clip_norm = 0,
          .on_host = 1,
          .host_room = 300 << 10,
          .fused = true},
         {.device = "cpu",
          .amp = graph::AmpMode::kBf16,
          .parameters = DType::kSplit,
          .clip_norm = 0,
          .on_host = 1,
          .host_room = 400 << 10,
          .fused = true,
          .deferred = 0.6}},
        4)),
    [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace cairn::step
