// What a plan says that norm and update move is what their programs do.
#include "runtime/compile/update/traffic.h"

#include "tests/runtime/compile/update_check.h"
#include "tests/support/seeds.h"

namespace cairn::engine {
namespace {

// In and out of the device, per tier.
using Moved = std::map<std::pair<Tier, bool>, int64_t>;

void add(Moved& moved, const Program& program) {
  for (const CopyJob& job : program.copies)
    moved[job.to == Tier::kDevice ? std::pair(job.from, true) : std::pair(job.to, false)] += job.bytes;
}

// Of the programs, and of the plan's account of them.
void expect_moved(const CompiledPlan& plan, bool with_norm) {
  Moved programs, account;
  if (with_norm) add(programs, plan.program(graph::kGradientNorm));
  add(programs, plan.program(graph::kUpdate));
  for (const auto& [value, crossing] : update_crossings(plan)) {
    const Tier tier = plan.link_tier.at(static_cast<size_t>(crossing.link));
    account[{tier, true}] += crossing.in + crossing.before;
    account[{tier, false}] += crossing.out;
  }
  std::erase_if(account, [](const auto& entry) { return entry.second == 0; });
  EXPECT_EQ(programs, account);
}

std::shared_ptr<Graph> wide() {
  auto g = std::make_shared<Graph>();
  ValueId x = g->input("x", {DType::kF32, {4, 128}});
  const ValueId t = g->input("t", {DType::kF32, {4, 128}});
  for (int i = 0; i < 6; ++i)
    x = g->op("gelu", {g->op("linear", {x, parameter(*g, "w" + std::to_string(i), {128, 128})})[0]})[0];
  const auto loss = g->op("mse", {x, t});
  g->freeze(loss[0], loss[1], {});
  return g;
}

std::shared_ptr<const CompiledPlan> planned(device::Device& device, PlanOptions o, double share) {
  const int64_t most = compile(wide(), device, o)->plan.arena_bytes;
  o.tiers = {Tier::kHost};
  o.forced.update_on_device = true;
  o.budget_bytes = 1;
  try {
    compile(wide(), device, o);
  } catch (const Error& error) {
    o.budget_bytes = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  o.budget_bytes += static_cast<int64_t>(share * static_cast<double>(most - o.budget_bytes));
  return compile(wide(), device, o);
}

TEST(Traffic, TheAccountIsWhatTheProgramsCopy) {
  const auto device = cpu();
  for (const char* optimizer : {"adamw", "sgd", "muon"})
    for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16})
      for (const double share : support::cases({0.0, 0.2, 0.5, 0.9}, 3)) {
        SCOPED_TRACE(cat(optimizer, ' ', static_cast<int>(amp), ' ', share));
        PlanOptions o;
        o.optimizer.name = optimizer;
        o.amp = amp;
        const auto plan = planned(*device, o, share);
        expect_moved(*plan, !plan->joint->squares_in_backward);
      }
}

TEST(Traffic, WhatIsUpdatedWithinBackwardCostsTheUpdateNothing) {
  const auto device = cpu();
  PlanOptions o;
  o.fuse_update = true;
  const auto resident = compile(wide(), *device, o);
  const auto plan = planned(*device, o, 0.0);
  EXPECT_GT(plan->home_bytes(Tier::kHost), 0);
  EXPECT_TRUE(update_crossings(*plan).empty());
  expect_moved(*plan, true);
  EXPECT_EQ(plan->update_seconds, resident->update_seconds);
  for (const plan::Value& value : plan->problem.values) EXPECT_EQ(value.home_seconds, 0);
}

// Gradients that leave while the others' moments do cost the norm's way, unless it is known by then.
TEST(Traffic, TheNormIsPartOfIt) {
  const auto device = cpu();
  const auto with = planned(*device, {}, 0.02);
  ASSERT_TRUE(with->joint->squares_in_backward);
  CompiledPlan without = *with;
  auto joint = std::make_shared<graph::JointGraph>(*with->joint);
  joint->squares_in_backward = false;
  without.joint = joint;
  expect_moved(without, true);
  const costs::Model costs(device->info(), nullptr);
  EXPECT_GT(streaming_seconds(without, costs), streaming_seconds(*with, costs));
}

}  // namespace
}  // namespace cairn::engine
