// Updates deferred into the next forward part: the same bits as behind backward, whoever looks at them and whenever.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <limits>
#include <map>
#include <thread>

#include "runtime/step/stepper.h"
#include "tests/runtime/engine/host_room.h"
#include "tests/support/seeds.h"
#include "trained.h"

namespace cairn::step {
namespace {

using graph::ValueId;
using Defer = engine::PlanOptions::Defer;

constexpr int64_t kBatch = 2, kTime = 16, kWidth = 64, kVocabulary = 48;
constexpr int kLayers = 4;
// Four times the largest update's weight, gradient and moments; all of them take twice as much.
constexpr int64_t kBudget = 1100 << 10;

std::shared_ptr<graph::Graph> model() {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal, ones;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.2;
  ones.init_scale = 1;
  ones.decay = false;
  const auto f32 = [](std::initializer_list<int64_t> d) { return TensorDesc{DType::kF32, Shape(d)}; };
  const ValueId ids = g->input("ids", {DType::kI32, {kBatch, kTime}});
  const ValueId targets = g->input("targets", {DType::kI32, {kBatch, kTime}});
  const ValueId scale = g->input("scale", f32({kWidth}));
  const ValueId table = g->parameter("table", f32({kVocabulary, kWidth}), normal);
  ValueId x = g->op("mul", {g->op("embedding", {table, ids})[0], scale})[0];
  for (int i = 0; i < kLayers; ++i) {
    const auto region = g->region_begin(cat("h", i), plan::Policy::kPlannerDecides);
    const ValueId n = g->op("layernorm", {x, g->parameter(cat("g", i), f32({kWidth}), ones),
                                          g->parameter(cat("b", i), f32({kWidth}), {})})[0];
    const ValueId up = g->op("linear", {n, g->parameter(cat("up", i), f32({4 * kWidth, kWidth}), normal)})[0];
    const ValueId h = g->op("dropout", {g->op("gelu", {up})[0]}, {{"rate", 0.1}})[0];
    x = g->op("add", {x, g->op("linear",
                               {h, g->parameter(cat("down", i), f32({kWidth, 4 * kWidth}), normal)})[0]})[0];
    g->region_end(region);
  }
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

struct Case {
  std::string device;
  Tier tier = Tier::kDisk;
  std::string optimizer = "adamw";
  graph::AmpMode amp = graph::AmpMode::kOff;
  DType parameters = DType::kF32;
  double clip_norm = 1;
  double on_host = 0;     // share that its processors make, beside a device that does not reach it
  int64_t host_room = 0;  // bytes: what they use beyond that lives on the disk
};

engine::PlanOptions options_for(const Case& c, Defer defer) {
  engine::PlanOptions o;
  o.optimizer.name = c.optimizer;
  o.amp = c.amp;
  o.parameters = c.parameters;
  o.tiers = {c.tier};
  o.micro_steps = 1;
  o.update_on_device = true;
  o.defer_updates = c.on_host > 0 ? Defer::kNever : defer;
  o.host_updates = c.on_host > 0 ? defer : Defer::kNever;
  o.host_update_share = c.on_host;
  o.budget_bytes = kBudget;
  if (c.host_room == 0) return o;
  o.tiers = {Tier::kHost, Tier::kDisk};
  o.costs = engine::with_host_room(c.host_room);
  o.force_costs = true;
  return o;
}

// Made once.
std::shared_ptr<const engine::CompiledPlan> plan_for(const Case& c, Defer defer) {
  static std::map<std::string, std::shared_ptr<const engine::CompiledPlan>> plans;
  auto& plan =
      plans[cat(c.device, kTierNames[static_cast<size_t>(c.tier)], c.optimizer, static_cast<int>(c.amp),
                dtype_name(c.parameters), static_cast<int>(defer), c.on_host, ' ', c.host_room)];
  if (plan == nullptr)
    plan = engine::compile(model(), *device::open(c.device, {.threads = 1}), options_for(c, defer));
  return plan;
}

class Training {
 public:
  Training(const Case& c, Defer defer, device::DeviceOptions device_options = {}) {
    device_options.threads = 1;
    const auto device = device::checked(device::open(c.device, device_options));
    session = std::make_shared<engine::Session>(plan_for(c, defer), device);
    initialise(*session, 11);
    Options step;
    step.schedule.rate = 0.01;
    step.clip_norm = c.clip_norm;
    stepper = std::make_unique<Stepper>(session, step);
  }
  const graph::JointGraph& joint() const { return *session->plan().joint; }
  int32_t id(const std::string& name) const { return joint().find(name); }
  void feed(float scale = 1) {
    const uint64_t step = stepper->state().step;
    std::vector<int32_t> words(kBatch * kTime);
    for (const char* name : {"ids", "targets"}) {
      for (size_t i = 0; i < words.size(); ++i)
        words[i] = static_cast<int32_t>((i * 5 + step * 3 + static_cast<size_t>(name[0])) % kVocabulary);
      session->write(id(name), words.data(), static_cast<int64_t>(words.size() * 4));
    }
    std::vector<float> scales(kWidth, scale);
    session->write(id("scale"), scales.data(), static_cast<int64_t>(scales.size() * 4));
  }
  Report micro(float scale = 1) {
    feed(scale);
    return stepper->micro();
  }
  std::vector<float> read(const std::string& name) const {
    std::vector<float> numbers(
        static_cast<size_t>(joint().values[static_cast<size_t>(id(name))].desc.shape.elements()));
    session->read(id(name), numbers.data(), static_cast<int64_t>(numbers.size() * 4));
    return numbers;
  }
  Values values() const { return trained(*session); }
  int64_t deferred() const { return session->plan().deferred_updates(); }

  // Of states that deferred updates fetch.
  int64_t fetched_bytes() const {
    int64_t sum = 0;
    for (const graph::ParameterSlot& slot : joint().parameters)
      for (const int32_t state : slot.states)
        if (slot.deferred && session->plan().homes.contains(state))
          sum += joint().values[static_cast<size_t>(state)].desc.bytes();
    return sum;
  }

  std::shared_ptr<engine::Session> session;
  std::unique_ptr<Stepper> stepper;
};

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
  for (int i = 0; i < 4; ++i) {
    const Report expected = behind.micro();
    EXPECT_EQ(looked_at.values().size(), behind.values().size());
    for (Training* const deferred : {&looked_at, &left_alone}) {
      const Report report = deferred->micro();
      EXPECT_EQ(report.loss, expected.loss) << i;
      EXPECT_EQ(report.gradient_norm, expected.gradient_norm) << i;
      if (i == 0 || deferred == &looked_at) continue;  // made already
      EXPECT_GE(report.in[static_cast<size_t>(GetParam().tier)].bytes, fetched);
      EXPECT_GE(report.out[static_cast<size_t>(GetParam().tier)].bytes, fetched);
    }
    EXPECT_EQ(looked_at.values(), behind.values()) << i;
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
    [](const auto& test) {
      const Case& c = test.param;
      return c.device + "_" + std::string(kTierNames[static_cast<size_t>(c.tier)]) + "_" + c.optimizer +
             (c.amp == graph::AmpMode::kOff    ? "_f32"
              : c.amp == graph::AmpMode::kFp16 ? "_fp16"
                                               : "_bf16") +
             (c.parameters == DType::kSplit ? "_split" : "") +
             (c.on_host > 0 ? cat("_host_", static_cast<int>(c.on_host * 100)) : "") +
             (c.host_room > 0 ? cat("_room_", c.host_room >> 10) : "");
    });

// Every transfer in turn fails once: the session ends, and says whether parameters were changed.
TEST(DeferredOnADisk, AFailingDiskEndsTheSession) {
  const Case cases[] = {{.device = "cpu"}, {.device = "cpu", .on_host = 1, .host_room = 400 << 10}};
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
