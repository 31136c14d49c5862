// Training with optimizer state in a tier: the same parameters and moments, to the bit, as with all of it on
// the device; and what happens when the disk it lives on fails.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <map>

#include "runtime/step/stepper.h"
#include "tests/support/seeds.h"
#include "trained.h"

namespace cairn::step {
namespace {

using graph::ValueId;

constexpr int64_t kRows = 16, kWidth = 128, kHidden = 320;

std::shared_ptr<graph::Graph> model() {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal, no_decay;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.1;
  no_decay.decay = false;
  const auto f32 = [](std::initializer_list<int64_t> d) { return TensorDesc{DType::kF32, Shape(d)}; };
  ValueId x = g->input("x", f32({kRows, kWidth}));
  const ValueId t = g->input("t", f32({kRows, kWidth}));
  for (int i = 0; i < 2; ++i) {
    const ValueId up = g->parameter(cat("up", i), f32({kHidden, kWidth}), normal);
    const ValueId bias = g->parameter(cat("bias", i), f32({kHidden}), no_decay);
    const ValueId down = g->parameter(cat("down", i), f32({kWidth, kHidden}), normal);
    const ValueId h = g->op("gelu", {g->op("linear", {x, up, bias})[0]})[0];
    x = g->op("add", {x, g->op("linear", {h, down})[0]})[0];
  }
  const auto loss = g->op("mse", {x, t});
  g->freeze(loss[0], graph::kNone, {});
  return g;
}

struct Case {
  std::string device;
  bool check = false;
  graph::AmpMode amp = graph::AmpMode::kOff;
  uint32_t micro_steps = 1;
  int threads = 1;
  std::string optimizer = "adamw";
  DType parameters = DType::kF32;
};

// At the smallest budget, if there is a tier; made once. streams: also where kernels reach it.
std::shared_ptr<const engine::CompiledPlan> plan_for(const Case& c, const std::vector<Tier>& tiers,
                                                     bool streams) {
  static std::map<std::string, std::shared_ptr<const engine::CompiledPlan>> plans;
  auto& plan = plans[cat(c.device, static_cast<int>(c.amp), ' ', c.micro_steps, ' ', c.threads, ' ',
                         c.optimizer, ' ', dtype_name(c.parameters), ' ',
                         tiers.empty() ? "" : kTierNames[static_cast<size_t>(tiers[0])], streams)];
  if (plan != nullptr) return plan;
  device::DeviceOptions device_options;
  device_options.threads = c.threads;
  const auto device = device::open(c.device, device_options);
  engine::PlanOptions options;
  options.amp = c.amp;
  options.parameters = c.parameters;
  options.optimizer.name = c.optimizer;
  // A group of another optimizer beside it, whose state splits or does not.
  if (c.optimizer == "muon") options.optimizer.groups = {{"up1", "adafactor"}};
  options.micro_steps = c.micro_steps;
  options.optimizer.name = c.optimizer;
  if (c.optimizer == "adamw8") options.optimizer.groups = {{.pattern = "up1", .optimizer = "adamw"}};
  options.tiers = tiers;
  options.forced.update_on_device = streams;
  options.policy = Policy::kKeep;  // so that state is all that can leave, and planning is quick
  if (!tiers.empty()) {
    options.budget_bytes = 1;
    try {
      engine::compile(model(), *device, options);
    } catch (const Error& error) {
      options.budget_bytes = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
    }
  }
  return plan = engine::compile(model(), *device, options);
}

class Training {
 public:
  Training(const Case& c, const std::vector<Tier>& tiers, device::DeviceOptions device_options = {},
           bool streams = false)
      : case_(c) {
    device_options.threads = c.threads;
    auto device = device::open(c.device, device_options);
    if (c.check) device = device::checked(device);
    session = std::make_shared<engine::Session>(plan_for(c, tiers, streams), device);
    initialise(*session, 5);
    Options step;
    step.micro_steps = c.micro_steps;
    step.schedule.rate = 0.01;
    stepper = std::make_unique<Stepper>(session, step);
  }

  Report micro() {
    const uint64_t batch = stepper->state().step * case_.micro_steps + stepper->state().micro;
    std::vector<float> numbers(kRows * kWidth);
    for (const char* name : {"x", "t"}) {
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] =
            static_cast<float>((i * 7 + batch * 31 + static_cast<size_t>(name[0])) % 101) / 101.0f - 0.5f;
      session->write(session->plan().joint->find(name), numbers.data(),
                     static_cast<int64_t>(numbers.size() * 4));
    }
    return stepper->micro();
  }
  Report train(uint64_t steps) {
    Report report;
    for (const uint64_t end = stepper->state().step + steps; stepper->state().step < end;) report = micro();
    return report;
  }
  Values values() const { return trained(*session); }
  void expect_exact_memory() const {
    const engine::CompiledPlan& plan = session->plan();
    const device::TierCount arena = session->count(Tier::kDevice);
    EXPECT_EQ(arena.peak_height_bytes, plan.plan.arena_bytes);
    EXPECT_EQ(arena.peak_live_bytes, plan.plan.device_peak_bytes);
    EXPECT_EQ(arena.live_bytes, plan.problem.persistent_bytes());
    for (size_t link = 0; link < plan.link_tier.size(); ++link) {
      const device::TierCount tier = session->count(plan.link_tier[link]);
      const int64_t offloaded = plan.offloaded_bytes[static_cast<size_t>(plan.link_tier[link])];
      EXPECT_EQ(tier.reserved_bytes, offloaded + plan.plan.tier_arena_bytes[link]);
      EXPECT_EQ(tier.peak_height_bytes, offloaded + plan.plan.tier_arena_bytes[link]);
      EXPECT_EQ(tier.peak_live_bytes, offloaded + plan.plan.tier_peak_bytes[link]);
      EXPECT_EQ(tier.live_bytes, plan.resident_bytes(plan.link_tier[link]));
    }
  }

  std::shared_ptr<engine::Session> session;
  std::unique_ptr<Stepper> stepper;

 private:
  const Case case_;
};

class StateInATier : public ::testing::TestWithParam<Case> {};

TEST_P(StateInATier, ChangesNoBitOfParametersAndMoments) {
  Training resident(GetParam(), {});
  resident.train(4);
  const Values expected = resident.values();
  for (const auto& [tier, streams] :
       {std::pair(Tier::kHost, false), {Tier::kHost, true}, {Tier::kDisk, true}}) {
    Training offloaded(GetParam(), {tier}, {}, streams);
    const engine::CompiledPlan& plan = offloaded.session->plan();
    int64_t state_bytes = 0;
    for (const graph::ParameterSlot& slot : plan.joint->parameters)
      for (const int32_t state : plan.joint->owned(slot.value, graph::Role::kOptimizer)) {
        const bool leaves = plan.offloaded.contains(state);
        if (GetParam().optimizer != "adafactor")  // whose few rows may stay where weights leave
          EXPECT_TRUE(leaves) << "all moments leave at the smallest budget";
        if (leaves) state_bytes += plan.joint->values[static_cast<size_t>(state)].desc.bytes();
      }
    ASSERT_LT(plan.plan.arena_bytes, resident.session->plan().plan.arena_bytes);
    const Report report = offloaded.train(4);
    EXPECT_EQ(offloaded.values(), expected) << kTierNames[static_cast<size_t>(tier)];
    offloaded.expect_exact_memory();
    const auto t = static_cast<size_t>(tier);
    EXPECT_EQ(plan.update_at(), streams ? Tier::kDevice : Tier::kHost);
    if (!streams) {
      // At the smallest budget backward may offload a value, as without bfloat16 products: the micro-batch's own copies.
      int64_t of_micro_batch = 0;
      for (const engine::CopyJob& copy : engine::micro_batch_program(plan).copies)
        if (copy.to == tier) of_micro_batch += copy.bytes;
      EXPECT_EQ(report.out[t].bytes, of_micro_batch)
          << "the update moves nothing out: state is changed where it lives";
      continue;
    }
    EXPECT_GE(report.in[t].bytes, state_bytes) << "moments come in once per update";
    EXPECT_GE(report.out[t].bytes, state_bytes);
  }
}

TEST_P(StateInATier, SkippedAndDiscardedStepsLeaveItAsItWas) {
  Training offloaded(GetParam(), {Tier::kHost});
  offloaded.train(1);
  const Values before = offloaded.values();
  std::vector<float> bad(kRows * kWidth, std::numeric_limits<float>::infinity());
  Report report;
  for (uint32_t m = 0; m < GetParam().micro_steps; ++m) {
    offloaded.session->write(offloaded.session->plan().joint->find("x"), bad.data(),
                             static_cast<int64_t>(bad.size() * 4));
    report = offloaded.stepper->micro();
  }
  EXPECT_EQ(report.outcome, Outcome::kSkippedNonFinite);
  EXPECT_EQ(offloaded.values(), before);
}

INSTANTIATE_TEST_SUITE_P(
    Devices, StateInATier,
    ::testing::ValuesIn(support::cases<Case>(
        {{.device = "cpu", .threads = 2},
         {.device = "cpu", .check = true, .micro_steps = 3},
         {.device = "cpu", .check = true, .amp = graph::AmpMode::kBf16},
         {.device = "cpu", .amp = graph::AmpMode::kBf16, .micro_steps = 3},
         {.device = "cpu", .check = true, .threads = 2, .optimizer = "adamw8"},
         {.device = "cpu", .amp = graph::AmpMode::kBf16, .micro_steps = 3, .optimizer = "adamw8"},
         {.device = "reference", .check = true},
         {.device = "reference", .check = true, .optimizer = "adamw8"},
         {.device = "cpu", .check = true, .threads = 2, .optimizer = "adafactor"},
         {.device = "cpu", .check = true, .micro_steps = 2, .optimizer = "muon"},
         {.device = "cpu", .amp = graph::AmpMode::kBf16, .threads = 2, .optimizer = "muon"},
         {.device = "cpu",
          .check = true,
          .amp = graph::AmpMode::kBf16,
          .threads = 2,
          .parameters = DType::kBF16},
         {.device = "cpu",
          .amp = graph::AmpMode::kBf16,
          .micro_steps = 2,
          .optimizer = "adamw8",
          .parameters = DType::kBF16},
         {.device = "cpu", .amp = graph::AmpMode::kBf16, .optimizer = "muon", .parameters = DType::kBF16},
         {.device = "reference", .check = true, .amp = graph::AmpMode::kBf16, .parameters = DType::kBF16},
         {.device = "cpu",
          .check = true,
          .amp = graph::AmpMode::kBf16,
          .threads = 2,
          .parameters = DType::kSplit},
         {.device = "cpu",
          .amp = graph::AmpMode::kBf16,
          .micro_steps = 2,
          .optimizer = "adamw8",
          .parameters = DType::kSplit},
         {.device = "cpu", .amp = graph::AmpMode::kBf16, .optimizer = "muon", .parameters = DType::kSplit},
         {.device = "cpu", .amp = graph::AmpMode::kBf16, .optimizer = "sgd", .parameters = DType::kSplit},
         {.device = "reference", .check = true, .amp = graph::AmpMode::kBf16, .parameters = DType::kSplit}},
        3)),
    [](const auto& test) {
      const Case& c = test.param;
      return c.device + (c.check ? "_checked" : "") + (c.amp == graph::AmpMode::kOff ? "_f32" : "_bf16") +
             "_k" + std::to_string(c.micro_steps) + (c.optimizer == "adamw" ? "" : "_" + c.optimizer) +
             (c.parameters == DType::kF32     ? ""
              : c.parameters == DType::kSplit ? "_split"
                                              : "_rounded");
    });

// Every transfer in turn fails once. Until an update's kernels ran, parameters are as before; never does the
// session go on.
TEST(StateOnADisk, AFailingDiskEndsTheSessionAndSaysWhatIsLost) {
  std::atomic<int> left{1 << 30}, seen{0};
  device::DeviceOptions options;
  options.disk_fault = [&](bool, int64_t, int64_t bytes) -> int64_t {
    ++seen;
    return left.fetch_sub(1) == 0 ? -EIO : bytes;
  };
  const Case plain{.device = "cpu"};
  Training sound(plain, {Tier::kDisk}, options);
  sound.train(1);
  seen = 0;
  sound.micro();
  const int transfers = seen;
  ASSERT_GT(transfers, 4);
  int untouched = 0, partly = 0;
  for (int at = 0; at < transfers; at += 1 + transfers / 12) {
    left = 1 << 30;
    Training failing(plain, {Tier::kDisk}, options);
    failing.train(1);
    const std::string before = parameter_digest(*failing.session);
    left = at;
    for (int again = 0; again < 2; ++again) try {
        failing.micro();
        FAIL() << "transfer " << at << " failed and nobody noticed";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kIo) << error.what();
        const std::string message = error.what();
        EXPECT_NE(message.find("is lost since the last checkpoint"), std::string::npos) << message;
        if (message.find("parameters were updated") == std::string::npos) {
          EXPECT_NE(message.find("as before"), std::string::npos) << message;
          // Those that lived there are gone with it.
          if (failing.session->plan().homes.empty())
            EXPECT_EQ(parameter_digest(*failing.session), before);
          else
            EXPECT_THROW(parameter_digest(*failing.session), Error);
          untouched += again;
        } else {
          partly += again;
        }
      }
    EXPECT_FALSE(failing.session->poisoned());
    const graph::JointGraph& joint = *failing.session->plan().joint;
    const int32_t state = joint.owned(joint.parameters[0].value, graph::Role::kOptimizer).at(0);
    float moment = 0;
    EXPECT_THROW(failing.session->read_at(state, 0, &moment, 4), Error);
    EXPECT_EQ(failing.stepper->state().step, 1u);
  }
  EXPECT_GT(untouched, 0);
  EXPECT_GT(partly, 0);
}

}  // namespace
}  // namespace cairn::step
