#include "runtime/compile/residency/tier_memory.h"

#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

constexpr int kLayers = 6, kWidth = 128, kRows = 64;
constexpr int64_t kWeights = int64_t{kLayers} * kWidth * kWidth * 4;

std::shared_ptr<Graph> layers() {
  auto g = std::make_shared<Graph>();
  ValueId x = g->input("x", {DType::kF32, {kRows, kWidth}});
  const ValueId t = g->input("t", {DType::kF32, {kRows, kWidth}});
  for (int i = 0; i < kLayers; ++i)
    x = g->op("gelu", {g->op("linear", {x, parameter(*g, "w" + std::to_string(i), {kWidth, kWidth})})[0]})[0];
  const auto loss = g->op("mse", {x, t});
  g->freeze(loss[0], loss[1], {});
  return g;
}

struct TierMemory : testing::Test {
  std::shared_ptr<const CompiledPlan> plan(int64_t budget, std::vector<Tier> tiers, bool fused = false,
                                           Policy policy = Policy::kPlannerDecides) {
    PlanOptions o;
    o.budget_bytes = budget;
    o.tiers = std::move(tiers);
    o.micro_steps = 1;
    o.fuse_update = fused;
    o.policy = policy;
    return compile(layers(), *device, o);
  }
  int64_t smallest(std::vector<Tier> tiers, bool fused = false) {
    try {
      plan(1, std::move(tiers), fused);
    } catch (const Error& error) {
      return static_cast<int64_t>(error.fault()->smallest_budget_bytes);
    }
    ADD_FAILURE() << "a budget of one byte was met";
    return 0;
  }
  static void adds_up(const CompiledPlan& plan) {
    for (const Tier tier : {Tier::kDevice, Tier::kHost, Tier::kDisk}) {
      const CompiledPlan::Memory m = tier_memory(plan, tier);
      for (const int64_t bytes : {m.parameters, m.gradients, m.optimizer, m.activations, m.workspace})
        EXPECT_GE(bytes, 0) << static_cast<int>(tier);
      EXPECT_EQ(m.parameters + m.gradients + m.optimizer + m.activations + m.workspace,
                tier_peak_bytes(plan, tier))
          << static_cast<int>(tier);
      if (tier != Tier::kDevice) EXPECT_EQ(m.workspace, 0);
    }
  }
  static bool names_an_op(const CompiledPlan& plan, Tier tier) {
    const std::string name = peak_at(plan, tier);
    return std::any_of(plan.problem.ops.begin(), plan.problem.ops.end(),
                       [&](const plan::Op& op) { return op.name == name; });
  }
  const std::shared_ptr<device::Device> device = cpu();
};

TEST_F(TierMemory, NothingIsAwayWithoutATier) {
  const auto all = plan(0, {});
  adds_up(*all);
  EXPECT_EQ(tier_peak_bytes(*all, Tier::kHost), 0);
  EXPECT_EQ(tier_peak_bytes(*all, Tier::kDisk), 0);
  EXPECT_STREQ(peak_at(*all, Tier::kHost), "");
  EXPECT_TRUE(names_an_op(*all, Tier::kDevice)) << peak_at(*all, Tier::kDevice);
  EXPECT_EQ(tier_memory(*all, Tier::kDevice).gradients, kWeights / kLayers)
      << "the last layer's, where activations are most";
}

TEST_F(TierMemory, WhatLivesInATierIsThereByItsKind) {
  for (const Tier tier : {Tier::kHost, Tier::kDisk}) {
    const auto tight = plan(smallest({tier}), {tier});
    adds_up(*tight);
    const CompiledPlan::Memory away = tier_memory(*tight, tier), here = tier_memory(*tight, Tier::kDevice);
    EXPECT_GT(away.parameters, 0);
    EXPECT_LE(away.parameters, kWeights);
    EXPECT_GT(away.gradients, 0);
    EXPECT_LE(away.gradients, kWeights);
    EXPECT_GE(away.optimizer, 2 * kWeights) << "both moments, at least";
    EXPECT_EQ(here.optimizer, 0);
    EXPECT_LT(here.gradients, kWeights);
    const Tier other = tier == Tier::kHost ? Tier::kDisk : Tier::kHost;
    EXPECT_EQ(tier_peak_bytes(*tight, other), 0);
    EXPECT_TRUE(names_an_op(*tight, Tier::kDevice));
    // What a session takes is what was told.
    Session session(tight, device);
    fill(session);
    const double row[8] = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1.0};
    for (const graph::HyperBlock& hyper : tight->joint->hypers) session.write(hyper.value, row, sizeof row);
    session.run({1, 0, 0});
    session.update({1, 0, 0});
    expect_exact_memory(session);
  }
}

TEST_F(TierMemory, ActivationsAwayAreCopiesThatComeBack) {
  const auto moved = plan(0, {Tier::kHost}, false, Policy::kOffload);
  adds_up(*moved);
  const CompiledPlan::Memory away = tier_memory(*moved, Tier::kHost);
  EXPECT_EQ(away.parameters + away.gradients + away.optimizer, 0);
  EXPECT_GT(away.activations, 0);
  EXPECT_EQ(away.activations, moved->plan.tier_arena_bytes[0]);
  EXPECT_TRUE(names_an_op(*moved, Tier::kHost)) << peak_at(*moved, Tier::kHost);
}

TEST_F(TierMemory, StatesOfFusedUpdatesCountAsOptimizer) {
  const auto tight = plan(smallest({Tier::kHost}, true), {Tier::kHost}, true);
  adds_up(*tight);
  EXPECT_GT(tier_memory(*tight, Tier::kHost).optimizer, 0);
}

TEST_F(TierMemory, AtEveryBudgetInBetween) {
  const int64_t least = smallest({Tier::kHost}), most = plan(0, {})->plan.arena_bytes;
  for (int i = 1; i < 6; ++i) adds_up(*plan(least + (most - least) * i / 6, {Tier::kHost}));
}

}  // namespace
}  // namespace cairn::engine
