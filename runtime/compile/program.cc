#include "runtime/compile/program.h"

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

int64_t CompiledPlan::offset_between_steps(int32_t stored) const {
  if (stored < 0) return -1;
  if (problem.values[static_cast<size_t>(stored)].persistent)
    return plan.value_offsets[static_cast<size_t>(stored)];
  const auto found = gradient_offsets.find(stored);
  return found == gradient_offsets.end() ? -1 : found->second;
}

// Beside gradients that live until then, the largest gap.
CompiledPlan::FreeRange CompiledPlan::free_range() const {
  std::vector<std::pair<int64_t, int64_t>> taken;  // offset, bytes
  int64_t alive = persistent_bytes();
  FreeRange gap{alive, 0};
  int64_t end = alive;
  for (const auto& [value, offset] : gradient_offsets) {
    taken.emplace_back(offset, problem.values[static_cast<size_t>(value)].bytes);
    alive += taken.back().second;
  }
  std::sort(taken.begin(), taken.end());
  taken.emplace_back(plan.arena_bytes, 0);
  for (const auto& [offset, bytes] : taken) {
    if (offset - end > gap.bytes) gap = {end, offset - end};
    end = offset + bytes;
  }
  gap.bytes = std::clamp<int64_t>(plan.device_peak_bytes - alive, 0, gap.bytes);
  return gap;
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
    memory.of(graph::kind(role).counted) += bytes;
  };
  for (size_t e = 0; e < layout_value.size(); ++e) count(layout_value[e], layout->values[e].role);
  // One of several values made in place of each other stands for all: none of them persists.
  for (size_t j = 0; j < problem_value.size(); ++j) count(problem_value[j], joint->values[j].role);
  memory.workspace = plan.arena_bytes - counted;
  return memory;
}

}  // namespace cairn::engine
