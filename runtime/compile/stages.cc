#include "runtime/compile/stages.h"

#include <algorithm>
#include <unordered_set>

#include "runtime/base/checked.h"

namespace cairn::engine {

void Lowered::keep_ops(const std::vector<int32_t>& order, const std::vector<int32_t>& now) {
  std::vector<plan::Op> ops;
  std::vector<std::vector<int32_t>> parts;
  std::unordered_set<std::string> names;
  int32_t forward = 0;
  measured_ops = 0;
  int64_t idle = 0;  // the op that stands for norm and update: it is not measured
  for (const int32_t o : order) {
    plan::Op& kept = problem.ops[at(o)];
    forward += o < problem.backward_begin ? 1 : 0;
    for (auto* list : {&kept.inputs, &kept.outputs})
      for (int32_t& v : *list) {
        require(now[at(v)] >= 0, Code::kInternal, "'", kept.name, "' uses a value that is gone");
        v = now[at(v)];
      }
    while (!names.insert(kept.name).second) kept.name += cat('#', o);
    parts.push_back(std::move(problem_op[at(o)]));
    const bool measured = std::all_of(parts.back().begin(), parts.back().end(),
                                      [&](int32_t part) { return op_measured[at(part)]; });
    measured_ops += !parts.back().empty() && measured ? 1 : 0;
    idle += parts.back().empty() ? 1 : 0;
    ops.push_back(std::move(kept));
  }
  if (measured_ops + idle == static_cast<int64_t>(ops.size())) measured_ops += idle;
  problem.backward_begin = forward;
  problem.ops = std::move(ops);
  problem_op = std::move(parts);
}

int64_t Planned::persistent_bytes() const {
  int64_t end = 0;
  for (size_t v = 0; v < problem.values.size(); ++v)
    if (problem.values[v].persistent) end = std::max(end, plan.value_offsets[v] + problem.values[v].bytes);
  return end;
}

const Tiles* Lowered::tiles_of(int32_t op) const {
  const std::vector<int32_t>& parts = problem_op[at(op)];
  const auto found = parts.empty() ? tiles.end() : tiles.find(parts.back());
  return found == tiles.end() ? nullptr : found->second.get();
}

Where Lowered::where(int32_t value, Point point) const {
  const int32_t stored = joint->storage(value);
  if (point == Point::kMicroBatch && problem_value[at(stored)] >= 0) return {};
  const OffloadedPlace* place = nullptr;
  for (const auto* places : {&homes, &offloaded})
    if (const auto found = places->find(stored); place == nullptr && found != places->end())
      place = &found->second;
  if (place == nullptr) return {};
  const bool in_place = point == Point::kHostUpdate ? place->tier == Tier::kHost : reaches(place->tier);
  return {in_place ? Where::Use::kInPlace : Where::Use::kStreamed, place->tier,
          place->extents.empty() ? -1 : place->extents[0].tier_offset, place->extents};
}

Where Placed::where(int32_t value, Point point) const {
  if (point == Point::kHostUpdate)
    if (const auto copy = host_copies.find(value); copy != host_copies.end())
      return {Where::Use::kInPlace, Tier::kHost, copy->second};
  Where found = Lowered::where(value, point);
  const int32_t stored = problem_value[at(joint->storage(value))];
  if (!found.on_device() || stored < 0) return found;
  if (problem.values[at(stored)].persistent) {
    found.offset = plan.value_offsets[at(stored)];
  } else if (point != Point::kMicroBatch) {
    const auto gradient = gradient_offsets.find(stored);
    if (gradient != gradient_offsets.end()) found.offset = gradient->second;
  }
  return found;
}

bool Lowered::streams() const {
  for (const auto* places : {&offloaded, &homes})
    for (const auto& [value, place] : *places)
      if (!reaches(place.tier)) return true;
  return false;
}

Tier Lowered::update_at() const {
  if (!joint->has_optimizer()) return Tier::kDevice;
  if (!host_updated.empty()) return Tier::kHost;
  for (const auto* places : {&offloaded, &homes})
    for (const auto& [value, place] : *places)
      if (reaches(place.tier)) return place.tier;
  return Tier::kDevice;
}

int64_t Lowered::deferred_updates() const {
  const std::vector<graph::ParameterSlot>& slots = joint->parameters;
  const std::set<int32_t>& on_host = updates_beside_backward() ? host_deferred : host_updated;
  return std::count_if(slots.begin(), slots.end(),
                       [&](const auto& slot) { return slot.deferred || on_host.contains(slot.value); });
}

int64_t Placed::home_bytes(Tier tier) const {
  int64_t sum = 0;
  for (const plan::Value& value : problem.values)
    if (value.at_home() && link_tier[at(value.home)] == tier) sum += value.bytes;
  return sum;
}

// The largest gap between gradients that live until the update.
Placed::FreeRange Placed::free_range() const {
  std::vector<std::pair<int64_t, int64_t>> taken;  // offset, bytes
  int64_t alive = persistent_bytes();
  FreeRange gap{alive, 0};
  int64_t end = alive;
  for (const auto& [value, offset] : gradient_offsets) {
    taken.emplace_back(offset, problem.values[at(value)].bytes);
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
    const plan::Step& step = plan.steps[at(s)];
    if (step.kind == plan::StepKind::kRun)
      for (const int32_t v : problem.ops[at(step.index)].outputs) live[at(v)] = true;
    if (step.kind == plan::StepKind::kIn) live[at(step.index)] = true;
    if (step.kind == plan::StepKind::kFree) live[at(step.index)] = false;
  }
  Memory memory;
  int64_t counted = 0;
  const auto count = [&](int32_t value, graph::Role role) {
    if (value < 0 || !live[at(value)]) return;
    live[at(value)] = false;
    const int64_t bytes = problem.values[at(value)].bytes;
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
