// Averages of parameters: they begin as these and move with every applied update, whatever the plan.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/step/stepper.h"

namespace cairn::step {
namespace {

using graph::ValueId;

constexpr int64_t kRows = 4, kWidth = 64;
constexpr double kDecay = 0.75;

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

std::shared_ptr<graph::Graph> model(bool trains = true) {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.2;
  graph::ParameterOptions frozen = normal;
  frozen.frozen = true;
  ValueId h = g->input("x", f32({kRows, kWidth}));
  h = g->op("linear", {h, g->parameter("fixed", f32({kWidth, kWidth}), frozen)})[0];
  for (int layer = 0; layer < 3; ++layer)
    h = g->op("gelu", {g->op("linear", {h, g->parameter(cat("w", layer), f32({kWidth, kWidth}), normal),
                                        g->parameter(cat("b", layer), f32({kWidth}), {})})[0]})[0];
  if (!trains) {
    g->freeze(graph::kNone, graph::kNone, {h});
    return g;
  }
  g->freeze(g->op("mse", {h, g->input("t", f32({kRows, kWidth})), g->input("weight", f32({kRows}))})[0],
            graph::kNone, {});
  return g;
}

struct Rig {
  std::shared_ptr<engine::Session> session;
  std::unique_ptr<Stepper> stepper;

  explicit Rig(engine::PlanOptions plan = {}, const char* name = "cpu", double decay = kDecay) {
    device::DeviceOptions with;
    with.threads = 1;
    const auto device = device::checked(device::open(name, with));
    plan.optimizer.average_decay = decay;
    session = std::make_shared<engine::Session>(engine::compile(model(), *device, plan), device);
    initialise(*session, 3);
    Options options;
    options.schedule.rate = 1e-2;
    options.clip_norm = 0;
    options.micro_steps = plan.fuse_update ? 1 : 2;
    stepper = std::make_unique<Stepper>(session, options);
  }
  const graph::JointGraph& joint() const { return *session->plan().joint; }
  std::vector<float> read(const std::string& name) const {
    const int32_t value = joint().find(name);
    std::vector<float> numbers(
        static_cast<size_t>(joint().values[static_cast<size_t>(value)].desc.shape.elements()));
    session->read_floats(value, 0, numbers);
    return numbers;
  }
  void write(const char* name, const std::vector<float>& numbers) {
    session->write(joint().find(name), numbers.data(), static_cast<int64_t>(numbers.size() * 4));
  }
  Outcome step(int number, float weight = 1) {
    Report report;
    do {
      std::vector<float> x, t;
      for (int64_t i = 0; i < kRows * kWidth; ++i) {
        x.push_back(std::sin(0.37f * static_cast<float>(i + 1) + 1.3f * static_cast<float>(number)));
        t.push_back(std::cos(0.21f * static_cast<float>(i + 1) + static_cast<float>(number)));
      }
      write("x", x), write("t", t), write("weight", std::vector<float>(kRows, weight));
      report = stepper->micro();
    } while (report.outcome == Outcome::kAccumulated);
    return report.outcome;
  }
  std::map<std::string, std::vector<float>> averages() const {
    std::map<std::string, std::vector<float>> found;
    for (const int32_t value : joint().averages_of) {
      const std::string& name = joint().values[static_cast<size_t>(value)].name;
      found[name] = read(name + "/ema");
    }
    return found;
  }
};

TEST(Averages, BeginAsTheParametersAndFollowThem) {
  for (const char* device : {"cpu", "reference"}) {
    Rig rig({}, device);
    EXPECT_EQ(rig.averages().size(), 6U) << "not of what is frozen";
    std::map<std::string, std::vector<float>> expected;
    for (const auto& [name, average] : rig.averages()) {
      EXPECT_EQ(average, rig.read(name)) << name;
      expected[name] = average;
    }
    for (int step = 0; step < 4; ++step) {
      const bool applies = step != 2;
      EXPECT_EQ(rig.step(step, applies ? 1.0f : std::numeric_limits<float>::quiet_NaN()),
                applies ? Outcome::kApplied : Outcome::kSkippedNonFinite);
      for (auto& [name, average] : expected) {
        const std::vector<float> now = rig.read(name), found = rig.read(name + "/ema");
        for (size_t i = 0; i < now.size() && applies; ++i)
          average[i] += static_cast<float>(1 - kDecay) * (now[i] - average[i]);
        for (size_t i = 0; i < now.size(); ++i) ASSERT_NEAR(found[i], average[i], 1e-6) << name << ' ' << i;
      }
    }
    rig.write("b1", std::vector<float>(kWidth, 0.5f));
    EXPECT_EQ(rig.read("b1/ema"), std::vector<float>(kWidth, 0.5f)) << "what is written begins again";
  }
}

TEST(Averages, AreTheSameUnderEveryPlan) {
  const auto run = [](const engine::PlanOptions& plan, const char* device = "cpu") {
    Rig rig(plan, device);
    for (int step = 0; step < 3; ++step) rig.step(step);
    const device::TierCount arena = rig.session->count(Tier::kDevice);
    EXPECT_EQ(arena.peak_live_bytes, rig.session->plan().plan.device_peak_bytes);
    return rig.averages();
  };
  const auto plain = run({});
  engine::PlanOptions small;
  small.smallest_budget = true;
  engine::PlanOptions host = small;
  host.tiers = {Tier::kHost};
  engine::PlanOptions disk = small;
  disk.tiers = {Tier::kDisk};
  disk.machine.disk_room_bytes = 1 << 30;
  for (const engine::PlanOptions& plan : {small, host, disk}) EXPECT_EQ(run(plan), plain);
  engine::PlanOptions streams = host;
  streams.forced.update_on_device = true;
  EXPECT_EQ(run(streams), plain);
  engine::PlanOptions fused;
  fused.fuse_update = true;
  Rig one(fused), other;
  EXPECT_EQ(one.step(0), Outcome::kApplied);
  const auto before = one.averages();
  for (const auto& [name, average] : before) EXPECT_NE(average, one.read(name)) << name;
}

TEST(Averages, OfParametersInFewerBits) {
  for (const DType stored : {DType::kBF16, DType::kSplit}) {
    engine::PlanOptions plan;
    plan.amp = graph::AmpMode::kBf16;
    plan.parameters = stored;
    Rig rig(plan);
    auto expected = rig.read("w1");
    EXPECT_EQ(rig.read("w1/ema"), expected);
    rig.step(0);
    const auto now = rig.read("w1"), found = rig.read("w1/ema");
    for (size_t i = 0; i < now.size(); ++i)
      ASSERT_NEAR(found[i], expected[i] + (1 - kDecay) * (now[i] - expected[i]), 1e-6);
  }
}

TEST(Averages, DecayIsChecked) { EXPECT_THROW(Rig({}, "cpu", 1.0), Error); }

}  // namespace
}  // namespace cairn::step
