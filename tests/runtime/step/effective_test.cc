// Losses of the effective batch: K micro-batches of m rows have the gradients of one of K * m, where plain accumulation does not.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/step/stepper.h"
#include "tests/runtime/step/trained.h"

namespace cairn::step {
namespace {

using graph::ValueId;

constexpr int64_t kWidth = 12, kHidden = 24, kSpace = 8, kAll = 12;
constexpr double kRate = 0.25;

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

// Two towers with dropout, and the loss of their rows' similarities, in both directions. The scale is a parameter of both
// sides. micro_steps: of the effective values;
// 0: the towers' ends go into the loss as they are. masks: inputs in place of dropout. x is read in a region.
std::shared_ptr<graph::Graph> pairs(int64_t rows, int64_t micro_steps, bool masks = false) {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.4;
  const auto one = [&](const char* name, std::vector<ValueId> in, Attrs attrs = {}) {
    return g->op(name, std::move(in), std::move(attrs))[0];
  };
  const auto linear = [&](ValueId x, const std::string& name, int64_t n, int64_t k) {
    return one("linear", {x, g->parameter(name, f32({n, k}), normal)});
  };
  const ValueId scale = g->parameter("scale", f32({1}), normal);
  ValueId ends[2];
  for (const int tower : {0, 1}) {
    const std::string name(1, static_cast<char>('a' + tower));
    const ValueId x = g->input(name, f32({rows, kWidth}));
    const auto region = g->region_begin("tower_" + name, Policy::kPlannerDecides);
    ValueId h = masks ? one("mul", {x, g->input("mask_" + name, f32({rows, kWidth}))})
                      : one("dropout", {x}, {{"rate", kRate}});
    for (int layer = 0; layer < 2; ++layer)
      h = linear(one("gelu", {linear(h, cat(name, ".up", layer), kHidden, kWidth)}),
                 cat(name, ".down", layer), kWidth, kHidden);
    ends[tower] = linear(one("mul", {h, scale}), name + ".out", kSpace, kWidth);
    g->region_end(region);
    ends[tower] = micro_steps > 0
                      ? one("effective", {ends[tower]}, {{"micro_steps", micro_steps}})
                      : one("reshape", {ends[tower]}, {{"shape", std::vector<int64_t>{rows, kSpace}}});
  }
  const ValueId own = one("row_numbers", {ends[0]});
  const ValueId scaled = one("mul", {ends[0], scale});
  const std::vector<ValueId> there =
      g->op("cross_entropy", {one("matmul", {scaled, ends[1]}, {{"transpose_b", int64_t{1}}}), own});
  const std::vector<ValueId> back =
      g->op("cross_entropy", {one("matmul", {ends[1], scaled}, {{"transpose_b", int64_t{1}}}), own});
  const ValueId loss = one("add", {there[0], back[0]});
  g->freeze(loss, there[1], {});
  return g;
}

std::shared_ptr<device::Device> open(const char* name) {
  device::DeviceOptions options;
  options.threads = 1;
  return device::checked(device::open(name, options));
}

std::vector<float> numbers(int64_t count, int64_t first, int which) {
  std::vector<float> list;
  for (int64_t i = first; i < first + count; ++i)
    list.push_back(std::sin(0.37f * static_cast<float>(i * i % 101) + static_cast<float>(which)));
  return list;
}

// What dropout multiplies with in the micro-batches of a step: its bits follow from its place in the graph.
std::vector<std::vector<float>> masks(device::Device& device, std::shared_ptr<device::Device> shared,
                                      int64_t rows, uint64_t step, const graph::Graph& of) {
  std::vector<std::vector<float>> found(2);
  auto g = std::make_shared<graph::Graph>();
  const ValueId ones = g->input("ones", f32({rows, kWidth}));
  std::vector<ValueId> outputs;
  for (const graph::Op& op : of.ops()) {
    if (op.code != ops::OpCode::k_dropout)
      g->op("relu", {ones});
    else
      outputs.push_back(g->op("dropout", {ones}, {{"rate", kRate}})[0]);
  }
  g->freeze(graph::kNone, graph::kNone, outputs);
  engine::Session session(engine::compile(g, device, {}), std::move(shared));
  const std::vector<float> all(static_cast<size_t>(rows * kWidth), 1.0f);
  session.write(session.plan().joint->find("ones"), all.data(), rows * kWidth * 4);
  for (uint32_t micro = 0; micro < kAll / rows; ++micro) {
    session.run({5, step, micro});
    for (const size_t tower : {0, 1}) {
      std::vector<float> bits(all.size());
      session.read(session.plan().joint->find(g->values()[static_cast<size_t>(outputs[tower])].name),
                   bits.data(), rows * kWidth * 4);
      found[tower].insert(found[tower].end(), bits.begin(), bits.end());
    }
  }
  return found;
}

struct Rig {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<engine::Session> session;
  std::unique_ptr<Stepper> stepper;
  int64_t rows;
  uint32_t steps;

  Rig(const std::shared_ptr<graph::Graph>& graph, int64_t of, uint32_t micro_steps,
      const engine::PlanOptions& plan = {}, const char* name = "cpu")
      : device(open(name)), rows(of), steps(micro_steps) {
    session = std::make_shared<engine::Session>(engine::compile(graph, *device, plan), device);
    initialise(*session, 3);
    Options options;
    options.micro_steps = micro_steps;
    options.schedule.rate = 1e-2;
    options.seed = 5;
    stepper = std::make_unique<Stepper>(session, options);
  }
  const graph::JointGraph& joint() const { return *session->plan().joint; }
  void write(const char* name, const std::vector<float>& list) {
    session->write(joint().find(name), list.data(), static_cast<int64_t>(list.size() * 4));
  }
  void feed(uint64_t step, uint32_t micro) {
    const int64_t first = (static_cast<int64_t>(step) * kAll + micro * rows) * kWidth;
    write("a", numbers(rows * kWidth, first, 0));
    write("b", numbers(rows * kWidth, first, 1));
  }
  Report run(uint64_t step) {
    Report report;
    for (int pass = joint().in_parts() ? 0 : 1; pass < 2; ++pass)
      for (uint32_t micro = 0; micro < steps; ++micro) {
        feed(step, micro);
        report = stepper->micro();
        if (pass == 0) EXPECT_EQ(report.outcome, Outcome::kGathered);
        if (pass == 0) EXPECT_EQ(report.micro, micro + 1);
        if (pass == 1 && micro + 1 < steps) EXPECT_EQ(report.outcome, Outcome::kAccumulated);
      }
    return report;
  }
  std::map<std::string, std::vector<float>> gradients() const {
    std::map<std::string, std::vector<float>> found;
    for (const graph::ParameterSlot& slot : joint().parameters) {
      std::vector<float>& list = found[joint().values[static_cast<size_t>(slot.value)].name];
      list.resize(
          static_cast<size_t>(joint().values[static_cast<size_t>(slot.gradient)].desc.shape.elements()));
      session->read(slot.gradient, list.data(), static_cast<int64_t>(list.size() * 4));
    }
    return found;
  }
};

// The largest difference of two sets of gradients, as a part of the largest number.
double difference(const std::map<std::string, std::vector<float>>& one,
                  const std::map<std::string, std::vector<float>>& other) {
  double most = 0, largest = 0;
  for (const auto& [name, list] : one)
    for (size_t i = 0; i < list.size(); ++i) {
      most = std::max(most, static_cast<double>(std::abs(list[i] - other.at(name)[i])));
      largest = std::max(largest, static_cast<double>(std::abs(list[i])));
    }
  return most / largest;
}

TEST(Effective, GradientsAreThoseOfTheCompleteBatch) {
  for (const char* device : {"cpu", "reference"}) {
    const auto graph = pairs(3, 4);
    Rig parts(graph, 3, 4, {}, device), whole(pairs(kAll, 0, true), kAll, 1, {}, device),
        plain(pairs(3, 0), 3, 4, {}, device);
    for (uint64_t step = 0; step < 2; ++step) {
      const auto bits = masks(*parts.device, parts.device, 3, step, *graph);
      whole.write("mask_a", bits[0]);
      whole.write("mask_b", bits[1]);
      const Report exact = whole.run(step), report = parts.run(step);
      plain.run(step);
      EXPECT_EQ(report.outcome, Outcome::kApplied);
      EXPECT_EQ(report.step_weight, kAll);
      EXPECT_NEAR(report.step_loss / exact.step_loss, 1, 1e-6);
      EXPECT_NEAR(report.gradient_norm / exact.gradient_norm, 1, 1e-6);
      EXPECT_LT(difference(whole.gradients(), parts.gradients()), 1e-6) << device << ", step " << step;
      EXPECT_GT(difference(whole.gradients(), plain.gradients()), 1e-2);
    }
  }
}

TEST(Effective, OneMicroBatchIsTheGraphWithoutThem) {
  Rig with(pairs(kAll, 1), kAll, 1), without(pairs(kAll, 0), kAll, 1);
  EXPECT_FALSE(with.joint().in_parts());
  for (uint64_t step = 0; step < 3; ++step)
    EXPECT_EQ(with.run(step).step_loss, without.run(step).step_loss) << step;
  EXPECT_EQ(with.gradients(), without.gradients());
}

void expect_equal_plans(graph::AmpMode amp) {
  const auto run = [&](engine::PlanOptions plan) {
    plan.amp = amp;
    Rig rig(pairs(3, 4), 3, 4, plan);
    rig.session->reset_peaks();
    for (uint64_t step = 0; step < 3; ++step) rig.run(step);
    const device::TierCount arena = rig.session->count(Tier::kDevice);
    EXPECT_EQ(arena.peak_height_bytes, rig.session->plan().plan.arena_bytes);
    EXPECT_EQ(arena.peak_live_bytes, rig.session->plan().plan.device_peak_bytes);
    return std::tuple(trained(*rig.session), rig.session->plan().plan.arena_bytes, rig.gradients());
  };
  const auto [values, bytes, gradients] = run({});
  engine::PlanOptions small;
  small.smallest_budget = true;
  engine::PlanOptions offloads;
  offloads.tiers = {Tier::kHost};
  offloads.policy = Policy::kOffload;
  engine::PlanOptions recomputes;
  recomputes.policy = Policy::kRecompute;
  engine::PlanOptions both = small;
  both.tiers = {Tier::kHost};
  for (const engine::PlanOptions& plan : {small, offloads, recomputes, both}) {
    const auto other = run(plan);
    EXPECT_TRUE(std::get<0>(other) == values);
    EXPECT_EQ(std::get<2>(other), gradients);
    EXPECT_LE(std::get<1>(other), bytes);
  }
}

TEST(Effective, EveryPlanHasTheSameBitsAndItsBytes) {
  expect_equal_plans(graph::AmpMode::kOff);
  expect_equal_plans(graph::AmpMode::kBf16);
}

std::string refused(const std::function<void()>& work, Code code) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "it was not refused";
  return "";
}

TEST(Effective, TheSecondPassHasTheInputsOfTheFirst) {
  Rig rig(pairs(3, 4), 3, 4);
  for (uint32_t micro = 0; micro < 4; ++micro) {
    rig.feed(0, micro);
    rig.stepper->micro();
  }
  rig.feed(0, 0);
  rig.stepper->micro();
  rig.feed(0, 2);
  const std::string told = refused([&] { rig.stepper->micro(); }, Code::kInvalidArgument);
  EXPECT_NE(told.find("micro-batch 2 of 4"), std::string::npos) << told;
  rig.feed(0, 1);
  EXPECT_EQ(rig.stepper->micro().micro, 2U) << "it goes on";
  EXPECT_NE(refused([&] { rig.stepper->apply(); }, Code::kWrongState).find("no remainder"),
            std::string::npos);
  refused([&] { rig.stepper->configure(rig.stepper->options()); }, Code::kWrongState);
  rig.stepper->discard();
  EXPECT_EQ(rig.run(0).outcome, Outcome::kApplied);
  Rig same(pairs(3, 4), 3, 4);
  same.run(0);
  EXPECT_TRUE(trained(*same.session) == trained(*rig.session)) << "what was discarded left nothing";
}

TEST(Effective, OthersMicroStepsAreRefused) {
  engine::PlanOptions plan;
  plan.micro_steps = 3;
  EXPECT_NE(
      refused([&] { Rig(pairs(3, 4), 3, 4, plan); }, Code::kInvalidArgument).find("effective batch of 4"),
      std::string::npos);
  EXPECT_NE(refused([&] { Rig(pairs(3, 4), 3, 2); }, Code::kInvalidArgument).find("micro_steps is 2"),
            std::string::npos);
}

}  // namespace
}  // namespace cairn::step
