// Values that outlive a run and are no parameters: a running mean, which an applied step moves once, and a cache, which
// programs append to.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/step/stepper.h"

namespace cairn::step {
namespace {

using graph::ValueId;
using graph::ValueKind;

constexpr int64_t kRows = 6, kWidth = 5, kOut = 3;
constexpr double kMomentum = 0.3;

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

// The mean is taken of a hidden layer, in a region that plans may recompute; layers above subtract what it was.
std::shared_ptr<graph::Graph> model(bool trains = true) {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.5;
  const ValueId x = g->input("x", f32({kRows, kWidth}));
  const ValueId mean = g->resident("mean", ValueKind::kStatistic, f32({kWidth}), 0.25);
  ValueId h = x;
  for (int layer = 0; layer < 3; ++layer) {
    const auto region = g->region_begin(cat("h", layer), Policy::kPlannerDecides);
    const ValueId up = g->op("linear", {h, g->parameter(cat("up", layer), f32({64, kWidth}), normal)})[0];
    h = g->op("linear",
              {g->op("gelu", {up})[0], g->parameter(cat("down", layer), f32({kWidth, 64}), normal)})[0];
    if (layer == 1) {
      g->op("running_mean", {h, mean}, {{"momentum", kMomentum}});
      h = g->op("sub", {h, mean})[0];
    }
    g->region_end(region);
  }
  const ValueId y = g->op("linear", {h, g->parameter("out", f32({kOut, kWidth}), normal)})[0];
  if (!trains) {
    g->freeze(graph::kNone, graph::kNone, {h, y});
    return g;
  }
  const auto loss = g->op("mse", {y, g->input("t", f32({kRows, kOut})), g->input("weight", f32({kRows}))});
  g->freeze(loss[0], graph::kNone, {});
  return g;
}

std::shared_ptr<device::Device> cpu() {
  device::DeviceOptions options;
  options.threads = 1;
  return device::checked(device::open("cpu", options));
}

struct Rig {
  std::vector<std::shared_ptr<engine::Session>> sessions;
  std::unique_ptr<Stepper> stepper;

  explicit Rig(const engine::PlanOptions& plan = {}, uint32_t micro_steps = 2) {
    const auto device = cpu();
    const engine::ProgramGraph graphs[] = {{"train", model()}, {"evaluate", model(false)}};
    sessions = engine::Session::open(engine::compile_set(graphs, *device, plan), device);
    initialise(*sessions[0], 3);
    Options options;
    options.micro_steps = micro_steps;
    options.schedule.rate = 1e-2;
    options.clip_norm = 0;  // goes with updates that are fused into backward
    stepper = std::make_unique<Stepper>(sessions[0], options);
  }
  const graph::JointGraph& joint(size_t program = 0) const { return *sessions[program]->plan().joint; }
  void write(size_t program, const char* name, const std::vector<float>& numbers) {
    sessions[program]->write(joint(program).find(name), numbers.data(),
                             static_cast<int64_t>(numbers.size() * 4));
  }
  std::vector<float> read(const char* name, size_t program = 0) const {
    const int32_t value = joint(program).find(name);
    std::vector<float> numbers(
        static_cast<size_t>(joint(program).values[static_cast<size_t>(value)].desc.bytes() / 4));
    sessions[program]->read(value, numbers.data(), static_cast<int64_t>(numbers.size() * 4));
    return numbers;
  }
  static std::vector<float> data(int64_t count, int batch) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < count; ++i)
      numbers.push_back(std::sin(0.37f * static_cast<float>(i + 1) + 1.3f * static_cast<float>(batch)));
    return numbers;
  }
  Report micro(int batch, float weight = 1) {
    write(0, "x", data(kRows * kWidth, batch));
    write(0, "t", data(kRows * kOut, batch + 7));
    write(0, "weight", std::vector<float>(kRows, weight));
    return stepper->micro();
  }
  void evaluate(int batch) {
    write(1, "x", data(kRows * kWidth, batch));
    sessions[1]->run({});
  }
};

TEST(Statistics, AnAppliedStepMovesThemOnceByItsWholeBatch) {
  Rig rig;
  ASSERT_EQ(rig.read("mean"), std::vector<float>(kWidth, 0.25f)) << "as it was declared";
  rig.micro(0);
  EXPECT_EQ(rig.read("mean"), std::vector<float>(kWidth, 0.25f)) << "in the midst of a step";
  std::vector<double> sums(kWidth + 1);
  const int32_t sum = rig.joint().find("mean/sum");
  rig.sessions[0]->read(sum, sums.data(), (kWidth + 1) * 8);
  EXPECT_EQ(sums[kWidth], kRows);
  rig.micro(1);
  rig.sessions[0]->read(sum, sums.data(), (kWidth + 1) * 8);
  EXPECT_EQ(sums[kWidth], 2 * kRows);
  const std::vector<float> moved = rig.read("mean");
  for (size_t i = 0; i < kWidth; ++i)
    EXPECT_FLOAT_EQ(moved[i], static_cast<float>(0.25 + kMomentum * (sums[i] / (2 * kRows) - 0.25)));
  rig.evaluate(5);
  EXPECT_EQ(rig.read("mean"), moved) << "evaluation";
  EXPECT_EQ(rig.read("mean", 1), moved) << "it is one value";
  rig.micro(2);
  rig.sessions[0]->read(sum, sums.data(), (kWidth + 1) * 8);
  EXPECT_EQ(sums[kWidth], kRows) << "the next step begins anew";
}

TEST(Statistics, ASkippedStepMovesNothing) {
  Rig rig;
  rig.micro(0);
  rig.micro(1);
  const std::vector<float> before = rig.read("mean");
  rig.micro(2);
  EXPECT_EQ(rig.micro(3, std::numeric_limits<float>::infinity()).outcome, Outcome::kSkippedNonFinite);
  EXPECT_EQ(rig.read("mean"), before);
  rig.micro(4, 0);
  EXPECT_EQ(rig.micro(5, 0).outcome, Outcome::kSkippedEmpty);
  EXPECT_EQ(rig.read("mean"), before);
  rig.micro(6);
  EXPECT_EQ(rig.micro(7).outcome, Outcome::kApplied);
  EXPECT_NE(rig.read("mean"), before);
}

TEST(Statistics, EveryPlanMovesThemByTheSameBits) {
  const auto trained = [](const engine::PlanOptions& plan, uint32_t micro_steps) {
    Rig rig(plan, micro_steps);
    for (int batch = 0; batch < 8; ++batch) rig.micro(batch);
    const engine::CompiledPlan& compiled = rig.sessions[0]->plan();
    EXPECT_EQ(rig.sessions[0]->count(Tier::kDevice).peak_live_bytes, compiled.plan.device_peak_bytes);
    std::vector<float> found = rig.read("mean");
    for (const char* name : {"up0", "down2", "out"})
      for (const float f : rig.read(name)) found.push_back(f);
    return found;
  };
  for (const uint32_t micro_steps : {1u, 2u}) {
    const std::vector<float> kept = trained({.policy = Policy::kKeep}, micro_steps);
    EXPECT_EQ(trained({.policy = Policy::kRecompute}, micro_steps), kept);
    EXPECT_EQ(trained({.policy = Policy::kOffload, .tiers = {Tier::kHost}}, micro_steps), kept);
    EXPECT_EQ(trained({.smallest_budget = true, .tiers = {Tier::kHost}}, micro_steps), kept);
    if (micro_steps == 1) EXPECT_EQ(trained({.fuse_update = true}, 1), kept);
  }
}

TEST(Statistics, CountAsParametersAndTheirSumsAsOptimizerState) {
  const Rig rig;
  const auto memory = rig.sessions[0]->plan().memory_at_peak();
  const auto bytes = [&](std::initializer_list<graph::Role> roles) {
    int64_t sum = 0;
    for (const graph::Resident& resident : rig.joint().residents)
      for (const graph::Role role : roles)
        if (resident.role == role)
          sum += align_up(rig.joint().values[static_cast<size_t>(resident.value)].desc.bytes(), kAlignment);
    return sum;
  };
  EXPECT_GT(bytes({graph::Role::kStatistic}), 0);
  EXPECT_EQ(memory.parameters,
            bytes({graph::Role::kParameter, graph::Role::kPacked, graph::Role::kStatistic}));
  EXPECT_EQ(memory.optimizer, bytes({graph::Role::kOptimizer, graph::Role::kSum}));
}

TEST(Statistics, ProgramsOfAStoreHaveThoseOfTheFirst) {
  const auto device = cpu();
  const engine::ProgramGraph graphs[] = {{"evaluate", model(false)}, {"train", model()}};
  EXPECT_THROW(engine::compile_set(graphs, *device, {}), Error);
  auto plain = std::make_shared<graph::Graph>();
  const ValueId w = plain->parameter("out", f32({kOut, kWidth}), {});
  const auto loss = plain->op("mse", {plain->op("linear", {plain->input("x", f32({kRows, kWidth})), w})[0],
                                      plain->input("t", f32({kRows, kOut}))});
  plain->freeze(loss[0], loss[1], {});
  auto own = std::make_shared<graph::Graph>();
  const ValueId mean = own->resident("other", ValueKind::kStatistic, f32({kWidth}));
  const ValueId y = own->op("sub", {own->input("x", f32({kRows, kWidth})), mean})[0];
  own->freeze(graph::kNone, graph::kNone, {y});
  const engine::ProgramGraph others[] = {{"train", plain}, {"evaluate", own}};
  try {
    engine::compile_set(others, *device, {});
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("has a statistic 'other'"), std::string::npos) << error.what();
  }
}

TEST(Caches, GrowFromRunToRun) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const auto device = cpu();
    auto g = std::make_shared<graph::Graph>();
    const ValueId cache = g->resident("cache", ValueKind::kCache, {dtype, Shape{6, 2}});
    const ValueId x = g->input("x", f32({2, 2})), at = g->input("at", {DType::kI32, {1}});
    const ValueId filled = g->op("append", {cache, x, at})[0];
    g->freeze(graph::kNone, graph::kNone,
              {g->op("reduce_sum", {g->op("cast", {filled}, {{"dtype", std::string("f32")}})[0]})[0]});
    engine::Session session(engine::compile(g, *device, {}), device);
    initialise(session, 1);
    const graph::JointGraph& joint = *session.plan().joint;
    const int32_t value = joint.find("cache"), total = joint.find(g->values()[g->outputs()[0]].name);
    const auto run = [&](int32_t position, float first) {
      const float rows[] = {first, first + 1, first + 2, first + 3};
      session.write(joint.find("x"), rows, sizeof rows);
      session.write(joint.find("at"), &position, sizeof position);
      session.run({});
      float sum = 0;
      session.read(total, &sum, sizeof sum);
      return sum;
    };
    EXPECT_EQ(run(0, 1), 10) << "1 2 3 4";
    EXPECT_EQ(run(2, 5), 36) << "and 5 6 7 8";
    EXPECT_EQ(run(2, 5), 36) << "a run that is repeated changes nothing";
    EXPECT_EQ(run(5, 9), 55) << "and 9 10; the second row is outside";
    EXPECT_EQ(session.count(Tier::kDevice).peak_live_bytes, session.plan().plan.device_peak_bytes);
    const std::vector<char> zero(static_cast<size_t>(joint.values[static_cast<size_t>(value)].desc.bytes()));
    session.write(value, zero.data(), static_cast<int64_t>(zero.size()));
    EXPECT_EQ(run(4, 1), 10) << "the host has emptied it";
  }
}

}  // namespace
}  // namespace cairn::step
