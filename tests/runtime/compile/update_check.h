// Whole optimizer steps on any device: what is updated, what is packed, how often something is launched.
#pragma once
#include <algorithm>

#include "runtime/compile/update/offloaded_state.h"
#include "tests/runtime/compile/support.h"

namespace cairn::engine {

// Linear layers, one of them frozen, with weights of many sizes: moments of some are several pieces where
// they live in a tier, others share one.
inline std::shared_ptr<Graph> layers(int count = 2) {
  auto g = std::make_shared<Graph>();
  graph::ParameterOptions frozen;
  frozen.frozen = true;
  ValueId x = g->input("x", {DType::kF32, {16, 96}});
  const ValueId t = g->input("t", {DType::kF32, {16, 96}});
  for (int i = 0; i < count; ++i) {
    const std::string name = "l" + std::to_string(i);
    const ValueId up = parameter(*g, name + ".up", {256, 96}), bias = parameter(*g, name + ".bias", {256});
    const ValueId h = g->op("gelu", {g->op("linear", {x, up, bias})[0]})[0];
    x = g->op("linear", {h, parameter(*g, name + ".down", {96, 256}), parameter(*g, name + ".b", {96})})[0];
  }
  x = g->op("linear", {x, g->parameter("frozen", {DType::kF32, {96, 96}}, frozen)})[0];
  const auto loss = g->op("mse", {x, t});
  g->freeze(loss[0], loss[1], {});
  return g;
}

// All weights packed, and state in `tier`: at the smallest budget all that may leave, at `share` of the way
// from there to no budget at all less. streams: also where kernels reach it.
inline std::shared_ptr<const CompiledPlan> tight_plan(const std::shared_ptr<Graph>& graph,
                                                      device::Device& device, graph::AmpMode amp, Tier tier,
                                                      double share = 0, bool streams = true) {
  PlanOptions options;
  options.forced.update_on_device = streams;
  options.amp = amp;
  options.tiers = {tier};
  options.policy = Policy::kKeep;  // so that state is all that can leave
  graph::JointOptions joint;
  joint.amp = amp;
  joint.packed_bytes = device.kernels().packed_bytes;
  joint.one_packed_form = device.kernels().one_packed_form;
  joint.threads = device.info().threads;
  const auto solved = [&](int64_t budget) {
    Lowered plan = lower({graph::derive(graph, joint)}, device, options);
    plan.problem.budget_bytes = budget;
    plan::SolverCache cache;
    const Outcome outcome = solve_with_offloaded_state(plan, device, options, cache,
                                                       std::numeric_limits<double>::infinity(), false);
    if (outcome.solved == Solved::kOver) cache.refuse(outcome.plan->problem);
    return outcome.plan;
  };
  double least = 0;
  try {
    solved(1);
  } catch (const Error& error) {
    least = static_cast<double>(error.fault()->smallest_budget_bytes);
  }
  const auto most = static_cast<double>(solved(0)->plan.arena_bytes);
  return std::make_shared<const CompiledPlan>(
      assemble(*solved(static_cast<int64_t>(least + share * (most - least))), device));
}

// A device like this one, with so much room on the host.
inline std::shared_ptr<const costs::Table> with_host_bytes(int64_t bytes) {
  costs::DeviceModel model;
  model.separate_memory = false;
  model.name = "Engine";
  model.memory_bytes = 1 << 30;
  model.f32_flops_per_second = model.bf16_flops_per_second = model.f16_flops_per_second = 1e12;
  model.memory_bytes_per_second = 1e11;
  model.links = {{"host", 1e-5, 1e10, 1e10, 0.7, bytes}, {"disk", 1e-4, 1e9, 1e9, 0.7, int64_t{1} << 40}};
  costs::Table table;
  table.model = model;
  return std::make_shared<const costs::Table>(table);
}

inline void set_hyper(Session& session, double factor = 0.01) {
  const double row[8] = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, factor};
  for (const graph::HyperBlock& hyper : session.plan().joint->hypers)
    session.write(hyper.value, row, sizeof row);
}

inline double step(Session& session, uint64_t index) {
  session.run({7, index, 0});
  const double squares = session.gradient_squares();
  session.update({});
  return squares;
}

inline Result values_of(const Session& session, std::initializer_list<graph::Role> roles) {
  Result found;
  const graph::JointGraph& joint = *session.plan().joint;
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (std::find(roles.begin(), roles.end(), joint.values[v].role) != roles.end())
      found[joint.values[v].name] = bytes_of(session, static_cast<int32_t>(v));
  return found;
}
inline Result trained(const Session& session) {
  return values_of(session, {graph::Role::kParameter, graph::Role::kOptimizer});
}
inline Result packed_weights_of(const Session& session) { return values_of(session, {graph::Role::kPacked}); }

// A weight that stays on the device, with a packed weight and moments that come in parts.
inline bool packed_behind_parts(const CompiledPlan& plan) {
  const auto& slots = plan.joint->parameters;
  return std::any_of(slots.begin(), slots.end(), [&](const graph::ParameterSlot& slot) {
    const std::vector<int32_t> states = plan.joint->owned(slot.value, graph::Role::kOptimizer);
    if (states.empty() || plan.joint->owned(slot.value, graph::Role::kPacked).empty() ||
        plan.offloaded.contains(slot.value))
      return false;
    const auto moment = plan.offloaded.find(states[0]);
    return moment != plan.offloaded.end() && moment->second.extents.size() > 1;
  });
}

// After an update all packed weights are what the repacking would make, and it does not run.
inline void expect_fresh_packed_weights(const std::shared_ptr<const CompiledPlan>& plan,
                                        const std::shared_ptr<device::Device>& device) {
  Session session(plan, device);
  fill(session);
  set_hyper(session);
  session.run({7, 0, 0});
  const Result before = packed_weights_of(session);
  ASSERT_FALSE(before.empty());
  for (uint64_t i = 0; i < 3; ++i) {  // the third update is a replay, where the device records
    step(session, i);
    const Result packed_weights = packed_weights_of(session);
    for (const auto& [name, bytes] : packed_weights)
      EXPECT_EQ(bytes == before.at(name), name.starts_with("frozen")) << name;
    // A run that made packed weights would write over this.
    const graph::JointGraph& joint = *plan->joint;
    Result blank;
    for (const auto& [name, bytes] : packed_weights) {
      blank[name].resize(bytes.size());
      session.write(joint.find(name), blank[name].data(), static_cast<int64_t>(bytes.size()));
    }
    session.run({7, i + 1, 0});
    EXPECT_EQ(packed_weights_of(session), blank) << "packs were made that were fresh";
    session.parameters_changed();
    session.run({7, i + 1, 0});
    EXPECT_EQ(packed_weights_of(session), packed_weights) << "step " << i;
  }
  expect_exact_memory(session);
}

// What three steps of so many micro-batches make.
inline Result train(const std::shared_ptr<const CompiledPlan>& plan,
                    const std::shared_ptr<device::Device>& device, uint32_t micro_steps) {
  Session session(plan, device);
  fill(session);
  set_hyper(session);
  for (uint64_t i = 0; i < 3; ++i) {
    for (uint32_t micro = 0; micro < micro_steps; ++micro) session.run({7, i, micro});
    session.gradient_squares();
    session.update({});
  }
  expect_exact_memory(session);
  return trained(session);
}

// Launches of a program that read as many operands as an update at least.
inline bool updates(const Launch& launch) { return launch.inputs >= 2; }
inline int64_t update_launches(const CompiledPlan& plan) {
  return std::count_if(plan.program(graph::kUpdate).launches.begin(),
                       plan.program(graph::kUpdate).launches.end(), updates);
}

}  // namespace cairn::engine
