#include "runtime/engine/compile/program.h"

#include <algorithm>

#include "runtime/base/checked.h"

namespace cairn::engine {

int64_t CompiledPlan::persistent_bytes() const {
  int64_t end = 0;
  for (size_t v = 0; v < problem.values.size(); ++v)
    if (problem.values[v].persistent) end = std::max(end, plan.value_offsets[v] + problem.values[v].bytes);
  return end;
}

bool CompiledPlan::streams() const {
  for (const auto* places : {&offloaded, &homes})
    for (const auto& [value, place] : *places)
      if (!reaches(place.tier)) return true;
  return false;
}

Tier CompiledPlan::update_at() const {
  if (!joint->has_optimizer()) return Tier::kDevice;
  if (!host_updated.empty()) return Tier::kHost;
  for (const auto* places : {&offloaded, &homes})
    for (const auto& [value, place] : *places)
      if (reaches(place.tier)) return place.tier;
  return Tier::kDevice;
}

int64_t CompiledPlan::deferred_updates() const {
  const std::vector<graph::ParameterSlot>& slots = joint->parameters;
  const std::set<int32_t>& on_host = updates_beside_backward() ? host_deferred : host_updated;
  return std::count_if(slots.begin(), slots.end(),
                       [&](const auto& slot) { return slot.deferred || on_host.contains(slot.value); });
}

int64_t CompiledPlan::home_bytes(Tier tier) const {
  int64_t sum = 0;
  for (const plan::Value& value : problem.values)
    if (value.at_home() && link_tier[static_cast<size_t>(value.home)] == tier) sum += value.bytes;
  return sum;
}

int64_t CompiledPlan::free_bytes() const {
  return std::max<int64_t>(0, std::min(plan.arena_bytes, plan.device_peak_bytes) - persistent_bytes());
}

CompiledPlan::Memory CompiledPlan::memory_at_peak() const {
  std::vector<bool> live(problem.values.size());
  for (size_t v = 0; v < live.size(); ++v) live[v] = problem.values[v].persistent;
  for (int32_t s = 0; s <= plan.peak_step && s < static_cast<int32_t>(plan.steps.size()); ++s) {
    const plan::Step& step = plan.steps[static_cast<size_t>(s)];
    if (step.kind == plan::StepKind::kRun)
      for (const int32_t v : problem.ops[static_cast<size_t>(step.index)].outputs)
        live[static_cast<size_t>(v)] = true;
    if (step.kind == plan::StepKind::kIn) live[static_cast<size_t>(step.index)] = true;
    if (step.kind == plan::StepKind::kFree) live[static_cast<size_t>(step.index)] = false;
  }
  Memory memory;
  int64_t counted = 0;
  const auto count = [&](int32_t value, graph::Role role) {
    if (value < 0 || !live[static_cast<size_t>(value)]) return;
    live[static_cast<size_t>(value)] = false;
    const int64_t bytes = problem.values[static_cast<size_t>(value)].bytes;
    counted += bytes;
    switch (role) {
      case graph::Role::kParameter:
      case graph::Role::kLow:
      case graph::Role::kPacked:
        memory.parameters += bytes;
        break;
      case graph::Role::kGradient:
        memory.gradients += bytes;
        break;
      case graph::Role::kOptimizer:
        memory.optimizer += bytes;
        break;
      default:
        memory.activations += bytes;
        break;
    }
  };
  for (size_t e = 0; e < layout_value.size(); ++e) count(layout_value[e], layout->values[e].role);
  // One of several values made in place of each other stands for all: none of them persists.
  for (size_t j = 0; j < problem_value.size(); ++j) count(problem_value[j], joint->values[j].role);
  memory.workspace = plan.arena_bytes - counted;
  return memory;
}

}  // namespace cairn::engine
