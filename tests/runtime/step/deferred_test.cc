// Updates deferred into the next forward part: the same bits as behind backward, whoever looks at them and whenever.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <limits>
#include <thread>

#include "tests/support/seeds.h"
#include "updated_elsewhere.h"

namespace cairn::step {
namespace {

using namespace elsewhere;

class Deferred : public ::testing::TestWithParam<Case> {};

TEST_P(Deferred, ChangesNoBitWhetherTheHostLooksOrNot) {
  Training behind(GetParam(), Defer::kNever), looked_at(GetParam(), Defer::kAlways),
      left_alone(GetParam(), Defer::kAlways);
  ASSERT_EQ(behind.deferred(), 0);
  const bool on_host = GetParam().on_host > 0;
  ASSERT_EQ(left_alone.deferred(), !on_host                 ? 4 * kLayers
                                   : GetParam().on_host < 1 ? kLayers
                                                            : 2 * kLayers + 1)
      << "on the device all but the table, which the first op reads; on the host what is a page or more";
  ASSERT_EQ(left_alone.session->plan().update_at(), on_host ? Tier::kHost : Tier::kDevice);
  ASSERT_EQ(left_alone.session->plan().streams_on_host(), GetParam().host_room > 0);
  const int64_t fetched = left_alone.fetched_bytes();
  if (GetParam().optimizer != "adamw8" && !on_host) EXPECT_GT(fetched, 100 << 10);
  bool pending = false;  // a skipped step leaves nothing to the next run
  for (int i = 0; i < 4; ++i) {
    const Report expected = behind.micro();
    EXPECT_EQ(looked_at.values().size(), behind.values().size());
    for (Training* const deferred : {&looked_at, &left_alone}) {
      const Report report = deferred->micro();
      EXPECT_EQ(report.loss, expected.loss) << i;
      EXPECT_EQ(report.gradient_norm, expected.gradient_norm) << i;
      if (!pending || deferred == &looked_at) continue;  // made already
      EXPECT_GE(report.in[static_cast<size_t>(GetParam().tier)].bytes, fetched);
      EXPECT_GE(report.out[static_cast<size_t>(GetParam().tier)].bytes, fetched);
    }
    EXPECT_EQ(looked_at.values(), behind.values()) << i;
    pending = expected.outcome == Outcome::kApplied;
  }
  EXPECT_EQ(left_alone.values(), behind.values());
  EXPECT_EQ(parameter_digest(*left_alone.session), parameter_digest(*behind.session));
}

TEST_P(Deferred, MeasuredPeaksAreThePlanned) {
  Training deferred(GetParam(), Defer::kAlways);
  for (int i = 0; i < 3; ++i) deferred.micro();
  deferred.values();
  const engine::CompiledPlan& plan = deferred.session->plan();
  const device::TierCount arena = deferred.session->count(Tier::kDevice);
  EXPECT_EQ(arena.peak_height_bytes, plan.plan.arena_bytes);
  EXPECT_EQ(arena.peak_live_bytes, plan.plan.device_peak_bytes);
  EXPECT_EQ(arena.live_bytes, plan.problem.persistent_bytes());
}

TEST_P(Deferred, GradientsAndHyperParametersAreThoseOfTheStepThatIsOver) {
  Training behind(GetParam(), Defer::kNever), deferred(GetParam(), Defer::kAlways);
  for (Training* const training : {&behind, &deferred}) {
    training->micro();
    training->stepper->set({.group = "", .name = "weight_decay", .value = 0.5});
  }
  EXPECT_EQ(deferred.read("up1/gradient"), behind.read("up1/gradient"));
  EXPECT_EQ(deferred.values(), behind.values()) << "the new decay is for the next step";
  for (Training* const training : {&behind, &deferred}) training->micro();
  EXPECT_EQ(deferred.values(), behind.values());
}

TEST_P(Deferred, AStepThatIsNotFiniteLeavesTheOneBefore) {
  Training behind(GetParam(), Defer::kNever), deferred(GetParam(), Defer::kAlways);
  for (Training* const training : {&behind, &deferred}) {
    training->micro();
    EXPECT_EQ(training->micro(std::numeric_limits<float>::infinity()).outcome, Outcome::kSkippedNonFinite);
  }
  EXPECT_EQ(deferred.values(), behind.values());
  for (Training* const training : {&behind, &deferred}) training->micro();
  EXPECT_EQ(deferred.values(), behind.values());
}

TEST_P(Deferred, ACancelledMicroBatchStillMakesThem) {
  Training behind(GetParam(), Defer::kNever), deferred(GetParam(), Defer::kAlways);
  behind.micro();
  deferred.micro();
  deferred.session->cancel();  // before it began
  EXPECT_THROW(deferred.micro(), Error);
  for (int round = 0; round < 12; ++round) {  // in the midst of it, wherever that is
    std::thread canceller([&, round] {
      std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
      deferred.session->cancel();
    });
    try {
      deferred.micro();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kCancelled) << error.what();
    }
    canceller.join();
    deferred.session->take_cancel();
    while (behind.stepper->state().step < deferred.stepper->state().step) behind.micro();
    EXPECT_EQ(deferred.values(), behind.values()) << round;
  }
  behind.micro();
  deferred.micro();
  EXPECT_EQ(deferred.values(), behind.values());
}

INSTANTIATE_TEST_SUITE_P(
    Devices, Deferred,
    ::testing::ValuesIn(support::cases<Case>(
        {{.device = "cpu"},
         {.device = "cpu", .tier = Tier::kHost, .clip_norm = 0},
         {.device = "reference", .tier = Tier::kHost},
         {.device = "cpu", .optimizer = "lion"},
         {.device = "cpu", .tier = Tier::kHost, .optimizer = "adamw8"},
         {.device = "cpu", .amp = graph::AmpMode::kBf16},
         {.device = "cpu", .amp = graph::AmpMode::kBf16, .parameters = DType::kSplit},
         {.device = "cpu", .tier = Tier::kHost, .amp = graph::AmpMode::kFp16},
         {.device = "cpu", .tier = Tier::kHost, .on_host = 1},
         {.device = "cpu", .tier = Tier::kHost, .on_host = 0.5},
         {.device = "cpu", .tier = Tier::kHost, .optimizer = "lion", .clip_norm = 0, .on_host = 1},
         {.device = "cpu", .tier = Tier::kHost, .amp = graph::AmpMode::kFp16, .on_host = 0.4},
         {.device = "cpu", .tier = Tier::kHost, .amp = graph::AmpMode::kBf16, .on_host = 1},
         {.device = "cpu", .on_host = 1, .host_room = 700 << 10},
         {.device = "cpu", .on_host = 0.5, .host_room = 300 << 10},
         {.device = "cpu", .optimizer = "lion", .clip_norm = 0, .on_host = 1, .host_room = 300 << 10},
         {.device = "cpu", .amp = graph::AmpMode::kFp16, .on_host = 1, .host_room = 1200 << 10},
         {.device = "cpu",
          .amp = graph::AmpMode::kBf16,
          .parameters = DType::kSplit,
          .on_host = 1,
          .host_room = 400 << 10}},
        4)),
    [](const auto& test) { return name_of(test.param); });

// Every transfer in turn fails once: the session ends, and says whether parameters were changed.
TEST(DeferredOnADisk, AFailingDiskEndsTheSession) {
  const Case cases[] = {{.device = "cpu"},
                        {.device = "cpu", .on_host = 1, .host_room = 400 << 10},
                        {.device = "cpu",
                         .clip_norm = 0,
                         .on_host = 1,
                         .host_room = 400 << 10,
                         .fused = true,
                         .deferred = 0.5}};
  for (const Case& c : cases)
    for (const int why : {EIO, ENOSPC}) {
      std::atomic<int> left{1 << 30}, seen{0};
      device::DeviceOptions options;
      options.disk_fault = [&](bool, int64_t, int64_t bytes) -> int64_t {
        ++seen;
        return left.fetch_sub(1) == 0 ? -why : bytes;
      };
      Training sound(c, Defer::kAlways, options);
      sound.micro();
      seen = 0;
      sound.micro();
      const int transfers = seen;
      ASSERT_GT(transfers, 4);
      for (int at = 0; at < transfers; at += 1 + transfers / 12) {
        left = 1 << 30;
        Training failing(c, Defer::kAlways, options);
        failing.micro();
        left = at;
        for (int again = 0; again < 2; ++again) try {
            failing.micro();
            FAIL() << "transfer " << at << " failed and nobody noticed";
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::kIo) << error.what();
            EXPECT_NE(std::string(error.what()).find("is lost since the last checkpoint"), std::string::npos);
          }
        EXPECT_FALSE(failing.session->poisoned());
        EXPECT_THROW(failing.values(), Error);
      }
    }
}

// A cancel may come at any time, between a kernel and the copy of what it made, too: either the micro-batch is cancelled, or
// it is whole.
TEST(DeferredOnADisk, ACancelAtAnyTransferLosesNothing) {
  for (const Defer defer : {Defer::kNever, Defer::kAlways}) {
    std::atomic<int> left{1 << 30}, seen{0};
    engine::Session* session = nullptr;
    device::DeviceOptions options;
    options.disk_fault = [&](bool, int64_t, int64_t bytes) -> int64_t {
      ++seen;
      if (left.fetch_sub(1) != 0) return bytes;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // for kernels, which go on meanwhile
      session->cancel();
      return bytes;
    };
    const Case plain{.device = "cpu"};
    Training expected(plain, Defer::kNever), cancelled(plain, defer, options);
    session = cancelled.session.get();
    cancelled.micro();
    expected.micro();
    cancelled.values();  // what follows makes no updates, so that a cancel skips copies
    int transfers = 0;
    const auto try_at = [&](int at) {
      seen = 0;
      left = at;
      try {
        cancelled.micro();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kCancelled) << error.what();
      }
      transfers = seen;
      left = 1 << 30;
      session->take_cancel();
      while (expected.stepper->state().step < cancelled.stepper->state().step) expected.micro();
      EXPECT_EQ(cancelled.values(), expected.values()) << "transfer " << at << " of " << transfers;
    };
    try_at(1 << 29);
    ASSERT_GT(transfers, 4);
    for (int at = 0, whole = transfers; at < whole; at += 1 + whole / 12) try_at(at);
  }
}

// Values that the host has the address of are always up to date.
TEST(DeferredUpdates, AreMadeAtOnceWhereTheHostHasAddresses) {
  const Case plain{.device = "cpu", .tier = Tier::kHost};
  Training behind(plain, Defer::kNever), deferred(plain, Defer::kAlways);
  const auto* const at = static_cast<const float*>(deferred.session->address(deferred.id("b1")));
  for (int i = 0; i < 2; ++i) {
    behind.micro();
    deferred.micro();
    EXPECT_EQ(std::vector<float>(at, at + kWidth), behind.read("b1"));
  }
}

TEST(DeferredUpdates, AreNotForSeveralMicroBatches) {
  const auto device = device::open("cpu", {});
  engine::PlanOptions options = options_for({.device = "cpu"}, Defer::kAlways);
  options.micro_steps = 2;
  EXPECT_FALSE(engine::compile(model(), *device, options)->joint->updates_deferred);
}

}  // namespace
}  // namespace cairn::step
