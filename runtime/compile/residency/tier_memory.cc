#include "runtime/compile/residency/tier_memory.h"

#include "runtime/base/checked.h"

namespace cairn::engine {
namespace {

using graph::Role;

// The entry of a resident's bytes. Only kinds that may leave the device have values in a tier.
int64_t& category(CompiledPlan::Memory& memory, Role role, const std::string& name) {
  require(graph::kind(role).is(graph::LEAVES), Code::kInternal, "'", name, "' lives in a tier");
  return memory.of(graph::kind(role).counted);
}

// Counts the problem's values that live in the tier, each once, by the role of what is stored there.
void count_homes(const CompiledPlan& plan, Tier tier, CompiledPlan::Memory& memory) {
  const std::vector<plan::Value>& values = plan.problem.values;
  std::vector<bool> counted(values.size());
  const auto count = [&](int32_t value, Role role) {
    if (value < 0 || counted[at(value)] || !values[at(value)].at_home()) return;
    if (plan.link_tier[at(values[at(value)].home)] != tier) return;
    category(memory, role, values[at(value)].name) += values[at(value)].bytes;
    counted[at(value)] = true;
  };
  for (size_t e = 0; e < plan.layout_value.size(); ++e)
    count(plan.layout_value[e], plan.layout->values[e].role);
  for (size_t j = 0; j < plan.problem_value.size(); ++j)
    count(plan.problem_value[j], plan.joint->values[j].role);
}

// The op that runs at this step, or the next one to run.
const char* op_from(const CompiledPlan& plan, size_t step) {
  const std::vector<plan::Step>& steps = plan.plan.steps;
  while (step < steps.size() && steps[step].kind != plan::StepKind::kRun) ++step;
  return step < steps.size() ? plan.problem.ops[at(steps[step].index)].name.c_str() : "";
}

// The bytes in which gradients wait for the host to sum them.
int64_t waiting_gradients(const CompiledPlan& plan, Tier tier) {
  return tier == Tier::kHost && !plan.host_added.empty() ? plan.add_ring_bytes : 0;
}

}  // namespace

int64_t tier_peak_bytes(const CompiledPlan& plan, Tier tier) {
  if (tier == Tier::kDevice) return plan.plan.arena_bytes;
  int64_t bytes = plan.offloaded_bytes[static_cast<size_t>(tier)];
  for (size_t link = 0; link < plan.link_tier.size(); ++link)
    if (plan.link_tier[link] == tier) bytes += plan.plan.tier_arena_bytes[link];
  return bytes;
}

int64_t optimizer_bytes(const CompiledPlan& plan, Tier tier) {
  int64_t bytes = plan.offloaded_bytes[static_cast<size_t>(tier)] - waiting_gradients(plan, tier);
  for (const auto& [value, place] : plan.offloaded) {
    const graph::JointValue& stored = plan.joint->values[at(value)];
    if (place.tier == tier && stored.role == Role::kGradient && plan.joint->slices_of(value) == nullptr)
      bytes -= align_up(stored.desc.bytes(), kAlignment);
  }
  return bytes;
}

CompiledPlan::Memory tier_memory(const CompiledPlan& plan, Tier tier) {
  if (tier == Tier::kDevice) return plan.memory_at_peak();
  CompiledPlan::Memory memory;
  memory.gradients = waiting_gradients(plan, tier);
  int64_t state = memory.gradients;
  for (const auto& [value, place] : plan.offloaded) {
    const graph::JointValue& stored = plan.joint->values[at(value)];
    if (place.tier != tier || stored.role == Role::kOptimizer) continue;
    if (plan.joint->slices_of(value) != nullptr) continue;  // its slices are counted
    category(memory, stored.role, stored.name) += align_up(stored.desc.bytes(), kAlignment);
    state += align_up(stored.desc.bytes(), kAlignment);
  }
  memory.optimizer = plan.offloaded_bytes[static_cast<size_t>(tier)] - state;
  count_homes(plan, tier, memory);
  memory.activations = tier_peak_bytes(plan, tier) - memory.parameters - memory.gradients - memory.optimizer;
  return memory;
}

const char* peak_at(const CompiledPlan& plan, Tier tier) {
  const std::vector<plan::Step>& steps = plan.plan.steps;
  if (tier == Tier::kDevice) return plan.plan.peak_step < 0 ? "" : op_from(plan, at(plan.plan.peak_step));
  int64_t highest = -1;
  size_t where = steps.size();
  for (size_t s = 0; s < steps.size(); ++s) {
    const plan::Step& step = steps[s];
    if (step.kind != plan::StepKind::kOut || plan.link_tier[at(step.tier)] != tier) continue;
    const plan::Value& value = plan.problem.values[at(step.index)];
    if (value.at_home() || step.tier_offset + value.bytes <= highest) continue;
    highest = step.tier_offset + value.bytes;
    where = s;
  }
  return op_from(plan, where);
}

}  // namespace cairn::engine
