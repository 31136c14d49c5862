// Training mixtures of experts: the same bits under every plan, memory to the byte, and choices that are made once.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/step/stepper.h"
#include "tests/runtime/compile/support.h"
#include "trained.h"

namespace cairn::step {
namespace {

using graph::ValueId;
using ops::OpCode;

constexpr int64_t kBatch = 2, kTime = 12, kWidth = 32, kHidden = 24, kVocabulary = 19, kExperts = 6,
                  kChosen = 2;

// Two layers, of which one has the weights of a normalised choice, biases and weights stored the other way round.
std::shared_ptr<graph::Graph> model() {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal, zeros;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.3;
  zeros.decay = false;
  const auto parameter = [&](const std::string& name, std::initializer_list<int64_t> d) {
    return g->parameter(name, {DType::kF32, Shape(d)}, normal);
  };
  const ValueId ids = g->input("ids", {DType::kI32, {kBatch, kTime}});
  const ValueId targets = g->input("targets", {DType::kI32, {kBatch, kTime}});
  const ValueId table = parameter("table", {kVocabulary, kWidth});
  ValueId x = g->op("embedding", {table, ids})[0];
  for (int64_t i = 0; i < 2; ++i) {
    const auto region = g->region_begin(cat("h", i), Policy::kPlannerDecides);
    const ValueId n = g->op("rmsnorm", {x})[0];
    const ValueId logits = g->op("linear", {n, parameter(cat("router", i), {kExperts, kWidth})})[0];
    const auto routed = g->op("route", {logits}, {{"k", kChosen}, {"normalise", i}});
    const auto groups = g->op("group_rows", {routed[1]}, {{"experts", kExperts}});
    const ValueId order = groups[0], places = groups[1], starts = groups[2];
    const auto product = [&](ValueId rows, const std::string& name, int64_t from, int64_t to) {
      const ValueId w =
          i == 0 ? parameter(name, {kExperts, to, from}) : parameter(name, {kExperts, from, to});
      std::vector<ValueId> in = {rows, w, starts};
      if (i == 1) in.push_back(g->parameter(name + "_bias", {DType::kF32, {kExperts, to}}, zeros));
      return g->op("grouped_linear", in, {{"transposed", i}})[0];
    };
    const ValueId rows = g->op("gather_rows", {n, order, places})[0];
    const ValueId h = g->op("swiglu", {product(rows, cat("gate", i), kWidth, kHidden),
                                       product(rows, cat("up", i), kWidth, kHidden)})[0];
    const ValueId y = product(h, cat("down", i), kHidden, kWidth);
    x = g->op("add", {x, g->op("combine_rows", {y, order, places, routed[0]})[0]})[0];
    g->region_end(region);
  }
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

// How often a micro-batch runs ops of this code.
int64_t runs(const engine::CompiledPlan& plan, OpCode code) {
  const engine::Program& program = plan.program();
  return std::ranges::count_if(program.code, [&](const engine::Instruction& i) {
    if (i.opcode != engine::Opcode::kLaunch) return false;
    const engine::Launch& launch = program.launches[static_cast<size_t>(i.a)];
    return launch.joint_op >= 0 && !launch.of_update &&
           plan.joint->ops()[static_cast<size_t>(launch.joint_op)].code == code;
  });
}

class Experts : public ::testing::TestWithParam<std::tuple<std::string, graph::AmpMode>> {
 protected:
  std::shared_ptr<device::Device> device_ = [] {
    device::DeviceOptions options;
    options.threads = 1;
    return device::checked(device::open(std::get<0>(GetParam()), options));
  }();
  engine::PlanOptions options() const {
    engine::PlanOptions o;
    o.amp = std::get<1>(GetParam());
    o.micro_steps = 2;
    return o;
  }

  Values train(const engine::PlanOptions& options,
               std::shared_ptr<const engine::CompiledPlan>* made = nullptr) {
    const auto plan = engine::compile(model(), *device_, options);
    EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
    EXPECT_EQ(runs(*plan, OpCode::k_route), 2);
    const auto session = std::make_shared<engine::Session>(plan, device_);
    initialise(*session, 3);
    Options step;
    step.micro_steps = options.micro_steps;
    step.schedule.rate = 0.01;
    if (options.fuse_update) step.clip_norm = 0;  // which needs the norm of all gradients first
    Stepper stepper(session, step);
    for (uint64_t micro = 0; micro < 3 * options.micro_steps; ++micro) {
      feed_words(*session, micro, kBatch * kTime, kVocabulary);
      losses_.push_back(stepper.micro().loss);
    }
    engine::expect_exact_memory(*session);
    if (made != nullptr) *made = plan;
    return trained(*session);
  }
  std::vector<double> losses_;
};

TEST_P(Experts, TrainTheSameUnderEveryPlan) {
  engine::PlanOptions o = options();
  o.policy = Policy::kKeep;
  std::shared_ptr<const engine::CompiledPlan> keep, plan;
  const Values expected = train(o, &keep);
  EXPECT_EQ(runs(*keep, OpCode::k_grouped_linear), 6);
  EXPECT_LT(losses_.back(), losses_.front());

  o.policy = Policy::kRecompute;
  EXPECT_EQ(train(o, &plan), expected);
  EXPECT_GT(runs(*plan, OpCode::k_grouped_linear), 6);
  EXPECT_GT(runs(*plan, OpCode::k_gather_rows), 2);
  EXPECT_LT(plan->plan.arena_bytes, keep->plan.arena_bytes);

  o.policy = Policy::kPlannerDecides;
  for (const auto& tiers : {std::vector<Tier>{}, {Tier::kHost}, {Tier::kDisk}}) {
    o.tiers = tiers;
    o.smallest_budget = true;
    EXPECT_EQ(train(o, &plan), expected) << tiers.size();
    EXPECT_LT(plan->plan.arena_bytes, keep->plan.arena_bytes);
  }
}

// The weights of the experts as what ops read, or in halves: other numbers, and those are the same under every plan.
TEST_P(Experts, TrainWithNarrowParameters) {
  engine::PlanOptions o = options();
  if (o.amp != graph::AmpMode::kBf16) return;  // parameters are bfloat16 with bf16 alone
  for (const DType parameters : {DType::kBF16, DType::kSplit}) {
    o.parameters = parameters;
    o.policy = Policy::kKeep;
    std::shared_ptr<const engine::CompiledPlan> plan;
    const Values expected = train(o, &plan);
    const int32_t gate = plan->joint->find("gate0");
    EXPECT_EQ(plan->joint->values[static_cast<size_t>(gate)].desc.dtype, DType::kBF16);
    o.policy = Policy::kRecompute;
    EXPECT_EQ(train(o), expected);
  }
}

TEST_P(Experts, TrainWithUpdatesInBackward) {
  engine::PlanOptions o = options();
  o.micro_steps = 1;
  o.policy = Policy::kKeep;
  o.fuse_update = true;
  const Values expected = train(o);
  o.policy = Policy::kRecompute;
  EXPECT_EQ(train(o), expected);
}

// Weights of several matrices, where an optimizer looks at rows and columns, and where it takes matrices alone.
TEST_P(Experts, TrainWithEveryKindOfOptimizer) {
  engine::PlanOptions o = options();
  for (const char* optimizer : {"adafactor", "muon", "adamw8"}) {
    o.optimizer.name = optimizer;
    o.policy = Policy::kKeep;
    o.tiers = {};
    o.smallest_budget = false;
    const Values expected = train(o);
    o.tiers = {Tier::kHost};
    o.smallest_budget = true;
    EXPECT_EQ(train(o), expected) << optimizer;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Experts,
                         ::testing::Combine(::testing::Values("reference", "cpu"),
                                            ::testing::Values(graph::AmpMode::kOff, graph::AmpMode::kBf16)),
                         [](const auto& test) {
                           return std::get<0>(test.param) +
                                  (std::get<1>(test.param) == graph::AmpMode::kOff ? "_f32" : "_bf16");
                         });

}  // namespace
}  // namespace cairn::step
