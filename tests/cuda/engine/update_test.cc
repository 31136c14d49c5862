// The optimizer on an (emulated) GPU: few launches, packed weights made on the way, the same bits wherever
// state lives.
#include "tests/runtime/compile/update_check.h"

namespace cairn::engine {
namespace {

using graph::AmpMode;

std::shared_ptr<device::Device> gpu(bool checked) {
  const auto device = device::open("cuda:0", {});
  return checked ? device::checked(device) : device;
}

PlanOptions options_for(AmpMode amp) {
  PlanOptions o;
  o.amp = amp;
  return o;
}

TEST(CudaUpdate, IsOneLaunchAndSoIsTheNorm) {
  for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16}) {
    const auto plan = compile(transformer(2), *gpu(false), options_for(amp));
    ASSERT_EQ(plan->program(graph::kGradientNorm).launches.size(), 1u);
    const int64_t workspace =
        plan->program(graph::kGradientNorm).launches[0].workspace_bytes;  // grows with the number of tensors
    EXPECT_GE(workspace, 2 * 8 * static_cast<int64_t>(plan->joint->ops(graph::kGradientNorm).size()));
    EXPECT_GE(plan->problem.ops.front().workspace_bytes, workspace);
    EXPECT_EQ(plan->program(graph::kUpdate).launches.size(), 1u) << "packs are made in it";
    EXPECT_EQ(plan->joint->ops(graph::kRepack).empty(), amp == AmpMode::kOff);
    EXPECT_GT(plan->joint->ops(graph::kUpdate).size(), 20u);
  }
}

// The others go together all the same.
TEST(CudaUpdate, WhatIsUpdatedWholeIsLaunchedAlone) {
  for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16}) {
    const auto device = gpu(true);
    PlanOptions o = options_for(amp);
    o.optimizer.name = "muon";
    const auto plan = compile(transformer(2), *device, o);
    int64_t whole = 0;
    for (const graph::JointOp& op : plan->joint->ops(graph::kUpdate))
      whole += op.attrs.word("optimizer") == "muon";
    EXPECT_GT(whole, 0);
    EXPECT_EQ(update_launches(*plan), 1 + whole);
    if (amp == AmpMode::kBf16) expect_fresh_packed_weights(plan, device);
  }
}

TEST(CudaUpdate, LeavesPackedWeightsFresh) {
  const PlanOptions o = options_for(AmpMode::kBf16);
  for (const bool checked : {false, true}) {
    const auto device = gpu(checked);
    expect_fresh_packed_weights(compile(layers(), *device, o), device);
    bool behind_parts = false;
    for (const Tier tier : {Tier::kHost, Tier::kDisk})
      for (const double share : {0.0, 0.3, 0.6}) {
        const auto plan = tight_plan(layers(), *device, o.amp, tier, share);
        EXPECT_FALSE(plan->offloaded.empty());
        expect_fresh_packed_weights(plan, device);
        behind_parts = behind_parts || packed_behind_parts(*plan);
      }
    EXPECT_TRUE(behind_parts);
  }
}

// Updates are launched apart only where something is waited for between them.
void expect_few_launches(const CompiledPlan& plan) {
  bool apart = true;
  for (const Instruction& i : plan.program(graph::kUpdate).code) {
    if (i.opcode == Opcode::kWait || i.opcode == Opcode::kRecord) apart = true;
    if (i.opcode != Opcode::kLaunch ||
        !updates(plan.program(graph::kUpdate).launches[static_cast<size_t>(i.a)]))
      continue;
    EXPECT_TRUE(apart);
    apart = false;
  }
}

TEST(CudaUpdate, ChangesNoBitWhereverStateLives) {
  for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16}) {
    const PlanOptions o = options_for(amp);
    const auto train = [&](const std::shared_ptr<const CompiledPlan>& plan,
                           const std::shared_ptr<device::Device>& device) {
      Session session(plan, device);
      fill(session);
      set_hyper(session);
      std::vector<double> squares;
      for (uint64_t i = 0; i < 4; ++i) squares.push_back(step(session, i));
      expect_exact_memory(session);
      return std::pair(trained(session), squares);
    };
    const auto checked = gpu(true), device = gpu(false);
    const auto resident = compile(layers(), *checked, o);
    const auto expected = train(resident, checked);
    EXPECT_EQ(train(compile(layers(), *device, o), device), expected) << "recorded";
    for (const Tier tier : {Tier::kHost, Tier::kDisk})
      for (const auto& on : {checked, device}) {
        const auto plan = tight_plan(layers(), *on, amp, tier);
        EXPECT_FALSE(plan->offloaded.empty());
        EXPECT_LT(plan->plan.arena_bytes, resident->plan.arena_bytes);
        EXPECT_GT(update_launches(*plan), 1);
        expect_few_launches(*plan);
        EXPECT_EQ(train(plan, on), expected) << kTierNames[static_cast<size_t>(tier)];
      }
  }
}

// Updates in the midst of backward leave packed weights to the repacking; those that are not, in the tied
// table's case, are a launch at the end.
TEST(CudaUpdate, ChangesNoBitFusedIntoBackward) {
  const auto device = gpu(true);
  Result expected;
  for (const bool fused : {false, true}) {
    PlanOptions o = options_for(AmpMode::kBf16);
    o.fuse_update = fused;
    const auto plan = compile(transformer(1), *device, o);
    EXPECT_EQ(plan->program(graph::kUpdate).launches.size(), 1u);
    Session session(plan, device);
    fill(session);
    session.run({7, 0, 0});
    double weight = 0;
    session.read(plan->joint->weight, &weight, sizeof weight);
    fill(session);
    for (const graph::ParameterSlot& slot : plan->joint->parameters)
      for (const int32_t moment : plan->joint->owned(slot.value, graph::Role::kOptimizer)) {
        const std::vector<char> zero(bytes_of(session, moment).size());
        session.write(moment, zero.data(), static_cast<int64_t>(zero.size()));
      }
    set_hyper(session, 1 / weight);
    for (uint64_t i = 0; i < 3; ++i) step(session, i);
    if (!fused) expected = trained(session);
    EXPECT_EQ(trained(session), expected);
  }
}

}  // namespace
}  // namespace cairn::engine
