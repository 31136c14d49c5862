#include "runtime/compile/residency/homes.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/compile/residency/gradients.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/offloaded_state.h"
#include "runtime/compile/update/streamed.h"
#include "runtime/plan/residency/residence.h"
#include "runtime/plan/residency/spread.h"

namespace cairn::engine {
namespace {

using graph::JointOp;
using graph::Role;

int64_t aligned(const Lowered& plan, int32_t value) {
  return align_up(plan.joint->values[at(value)].desc.bytes(), kAlignment);
}

// The end of a step reads parameters that have averages: kernels have to reach these.
bool may_leave_for(const Lowered& plan, size_t value, Tier tier) {
  const graph::JointGraph& joint = *plan.joint;
  return !joint.averages() || plan.reaches(tier) ||
         (joint.values[value].role != Role::kLow &&
          !std::ranges::binary_search(joint.averages_of, static_cast<int32_t>(value)));
}

// All slices of a weight live in one tier, where they make up the weight. False: no tier has room for one of the
// weights.
bool give_slices_homes(Lowered& plan, std::vector<int64_t>& room) {
  for (const graph::Slices& slices : plan.joint->slices) {
    if (plan.offloaded.contains(slices.whole)) continue;
    const int64_t bytes = aligned(plan, slices.whole);
    const auto link = std::find_if(room.begin(), room.end(), [&](const int64_t& left) {
      return left >= bytes &&
             may_leave_for(plan, at(slices.whole), plan.link_tier[static_cast<size_t>(&left - room.data())]);
    });
    if (link == room.end()) return false;
    *link -= bytes;
    const auto home = static_cast<int32_t>(link - room.begin());
    plan.homes[slices.whole] = {plan.link_tier[at(home)], {}};
    for (const int32_t part : slices.parts) {
      plan::Value& value = plan.problem.values[at(plan.problem_value[at(part)])];
      value.home = home;
      value.persistent = false;
      plan.homes[part] = {plan.link_tier[at(home)], {}};
    }
  }
  return true;
}

// Weights, packed weights and gradients of updates on the host live on the host tier, and may not be kept on the
// device. If a disk takes the rest, weights get the host's room first: they are fetched twice.
bool give_host_homes(Lowered& plan, std::vector<int64_t>& room) {
  if (plan.host_updated.empty()) return false;
  std::vector<int32_t> weights, gradients;
  each_on_host(plan, [&](const JointOp& update) {
    for (const int32_t v : made_on_host(plan, update)) weights.push_back(v);
    gradients.push_back(update.in[update_op::kGrad]);
  });
  const size_t host = link_to(plan, Tier::kHost), disk = link_to(plan, Tier::kDisk);
  for (const auto* list : {&weights, &gradients})
    for (const int32_t v : *list) {
      if (plan.offloaded.contains(v)) continue;
      plan::Value& value = plan.problem.values[at(plan.problem_value[at(v)])];
      const size_t link = !plan.streams_on_host() || room[host] >= value.bytes ? host : disk;
      value.home = static_cast<int32_t>(link);
      value.persistent = false;
      room[link] -= value.bytes;
      plan.homes[v] = {plan.link_tier[link], {}};
    }
  return true;
}

// Orders values by role, and spreads those of a role that find room in the first tier over all of them. So every link
// has work all the time.
std::vector<size_t> spread_by_role(const graph::JointGraph& joint, const std::vector<size_t>& values) {
  std::vector<std::pair<Role, std::vector<size_t>>> roles;
  for (const size_t v : values) {
    const Role role = joint.values[v].role;
    auto same = std::find_if(roles.begin(), roles.end(), [&](const auto& of) { return of.first == role; });
    if (same == roles.end()) same = roles.insert(same, {role, {}});
    same->second.push_back(v);
  }
  std::vector<size_t> order;
  for (const auto& [role, of] : roles)
    for (const size_t k : plan::spread(of.size())) order.push_back(of[k]);
  return order;
}

// The problem with every value that may live in a tier. Nothing: there is none.
std::optional<Lowered> find_residencies(Lowered plan) {
  const graph::JointGraph& joint = *plan.joint;
  // A part of the micro-batch runs without the others, so no copy may be in one for another.
  if (plan.link_tier.empty() || joint.in_parts()) return {};
  plan::Problem& problem = plan.problem;
  const std::vector<bool> used = used_by_ops(problem);
  std::vector<int64_t> room;
  for (const plan::Link& link : problem.links) room.push_back(link.capacity_bytes);
  bool any = !joint.slices.empty();
  if (!give_slices_homes(plan, room)) return {};
  any = give_host_homes(plan, room) || any;
  std::vector<size_t> leaving;
  for (size_t v = 0; v < plan.problem_value.size(); ++v) {
    const int32_t stored = plan.problem_value[v];
    if (stored < 0 || joint.values[v].alias_of >= 0 || !graph::kind(joint.values[v].role).is(graph::LEAVES))
      continue;
    const plan::Value& value = problem.values[at(stored)];
    if (value.persistent && used[at(stored)] && value.bytes >= kPageBytes) leaving.push_back(v);
  }
  if (room.size() > 1) leaving = spread_by_role(joint, leaving);
  for (const size_t v : leaving) {
    plan::Value& value = problem.values[at(plan.problem_value[v])];
    const auto link = std::find_if(room.begin(), room.end(), [&](const int64_t& left) {
      return left >= value.bytes &&
             may_leave_for(plan, v, plan.link_tier[static_cast<size_t>(&left - room.data())]);
    });
    if (link == room.end()) continue;
    *link -= value.bytes;
    value.home = static_cast<int32_t>(link - room.begin());
    plan.homes[static_cast<int32_t>(v)] = {plan.link_tier[at(value.home)], {}};
    any = true;
  }
  if (!any) return {};
  return plan;
}

// An op has the persistent values that it changes as inputs. Those that may live in a tier become outputs as well. If
// every micro-batch overwrites them, because a step has only one or because the host sums them, they are no longer
// inputs: then they need not be fetched.
Lowered mark_changes(Lowered plan) {
  const graph::JointGraph& joint = *plan.joint;
  std::erase_if(plan.host_added, [&](const auto& added) {
    const plan::Value& value = plan.problem.values[at(plan.problem_value[at(added.first)])];
    return value.home < 0 || plan.link_tier[at(value.home)] != Tier::kHost;
  });
  for (size_t o = 0; o < plan.problem.ops.size(); ++o) {
    plan::Op& op = plan.problem.ops[o];
    for (const int32_t joint_op : plan.problem_op[o]) {
      const JointOp& node = joint.ops()[at(joint_op)];
      for (size_t k = 0; k < node.out.size(); ++k) {
        if (node.out[k] < 0) continue;
        const int32_t v = plan.problem_value[at(joint.storage(node.out[k]))];
        if (v < 0 || plan.problem.values[at(v)].home < 0) continue;
        if (std::find(op.outputs.begin(), op.outputs.end(), v) == op.outputs.end()) op.outputs.push_back(v);
        const bool anew = plan.overwrites_gradients || plan.host_added.contains(node.out[k]);
        if (anew && (node.accumulates & node.first_writer) >> k & 1) std::erase(op.inputs, v);
        op.recomputable = false;
      }
    }
  }
  return plan;
}

}  // namespace

std::vector<int64_t> residency_bytes(const Lowered& plan) {
  std::vector<int64_t> bytes(plan.problem.links.size(), 0);
  const std::optional<Lowered> given = find_residencies(plan);
  if (!given) return bytes;
  for (const plan::Value& value : given->problem.values)
    if (value.home >= 0) bytes[at(value.home)] += value.bytes;
  return bytes;
}

std::string name_between_steps(const plan::Problem& problem) {
  std::string name = "between steps";
  const auto taken = [&](const plan::Op& op) { return op.name == name; };
  while (std::any_of(problem.ops.begin(), problem.ops.end(), taken)) name += '#';
  return name;
}

std::optional<Lowered> with_residencies(Lowered from, bool overwrites_gradients, bool ends_gradients) {
  std::optional<Lowered> found = find_residencies(std::move(from));
  if (!found) return {};
  Lowered plan = std::move(*found);
  const graph::JointGraph& joint = *plan.joint;
  plan.overwrites_gradients =
      overwrites_gradients && std::any_of(plan.homes.begin(), plan.homes.end(), [&](const auto& home) {
        return joint.values[at(home.first)].role == Role::kGradient;
      });
  plan = mark_changes(std::move(plan));
  plan::Op between;
  between.name = name_between_steps(plan.problem);
  between.recomputable = false;
  between.workspace_bytes = between_steps_bytes(plan);
  if (overwrites_gradients && ends_gradients) plan = end_resident_gradients(std::move(plan));
  plan::Problem& problem = plan.problem;
  if (plan.gradients_end) {  // gradients are still there after backward
    problem.ops.push_back(std::move(between));
    plan.problem_op.emplace_back();
    return plan;
  }
  problem.ops.insert(problem.ops.begin(), std::move(between));
  plan.problem_op.insert(plan.problem_op.begin(), std::vector<int32_t>());
  ++problem.backward_begin;
  return plan;
}

std::optional<SquaresChunks> squares_chunks(const Lowered& plan, int32_t gradient) {
  const TensorDesc& desc = plan.joint->values[at(gradient)].desc;
  if (plan.joint->slices_of(gradient) == nullptr || desc.dtype != DType::kF32 ||
      plan.registry->squares_chunk == nullptr)
    return std::nullopt;
  const int64_t all = desc.shape.elements();
  SquaresChunks chunks;
  chunks.elements = plan.registry->squares_chunk(all);
  chunks.count = (all + chunks.elements - 1) / chunks.elements;
  chunks.chunk_bytes = align_up(chunks.elements * dtype_bytes(desc.dtype), kAlignment);
  chunks.sums_bytes = align_up(chunks.count * dtype_bytes(DType::kF64), kAlignment);
  if (chunks.bytes() >= aligned(plan, gradient)) return std::nullopt;
  return chunks;
}

int64_t norm_bytes(const Lowered& plan, int32_t gradient) {
  const std::optional<SquaresChunks> chunks = squares_chunks(plan, gradient);
  return chunks ? chunks->bytes() : aligned(plan, gradient);
}

Planned with_solved_residencies(Lowered lowered, plan::Plan solved) {
  Planned plan(std::move(lowered), std::move(solved));
  const plan::Problem before = plan.problem;
  std::vector<bool> away;
  for (const int64_t place : plan.plan.home_offsets) away.push_back(place >= 0);
  plan.problem = plan::resolve_homes(before, away);
  for (plan::Step& step : plan.plan.steps) {
    if (step.kind != plan::StepKind::kRun) continue;
    const std::vector<int32_t>& outputs = before.ops[at(step.index)].outputs;
    for (size_t k = outputs.size(); k-- > 0;)
      if (before.values[at(outputs[k])].home >= 0 && plan.problem.values[at(outputs[k])].persistent)
        step.offsets.erase(step.offsets.begin() + static_cast<std::ptrdiff_t>(k));
  }
  const auto stays = [&](const auto& entry) {
    const int32_t stored = plan.problem_value[at(entry.first)];
    return stored >= 0 && !away[at(stored)];
  };
  std::erase_if(plan.homes, stays);
  std::erase_if(plan.host_added, stays);
  return plan;
}

Lowered with_residencies_of(const Placed& primary, Lowered plan) {
  if (primary.homes.empty()) return plan;
  const StoreLayout& layout = *plan.layout;
  for (size_t e = 0; e < layout.values.size(); ++e) {
    const int32_t from = primary.layout_value[e], to = plan.layout_value[e];
    if (from < 0 || to < 0 || !primary.problem.values[at(from)].at_home()) continue;
    plan.problem.values[at(to)].home = primary.problem.values[at(from)].home;
    plan.problem.values[at(to)].persistent = false;
  }
  std::map<int32_t, const OffloadedPlace*> places;  // by entry
  for (const auto& [value, place] : primary.homes)
    places[layout.entry_of[primary.index_in_set][at(value)]] = &place;
  const std::vector<int32_t>& entry_of = layout.entry_of[plan.index_in_set];
  for (size_t v = 0; v < entry_of.size(); ++v)
    if (entry_of[v] >= 0 && places.contains(entry_of[v]))
      plan.homes[static_cast<int32_t>(v)] = *places.at(entry_of[v]);
  plan.overwrites_gradients = primary.overwrites_gradients;
  return mark_changes(std::move(plan));
}

WholeValues whole_values(const Lowered& plan, const JointOp& update) {
  WholeValues whole;
  if (plan.on_host(update)) return whole;
  const int32_t weight = update.out[update_op::kParameter], gradient = update.in[update_op::kGrad];
  if (!streams_in_parts(plan, update)) {
    if (plan.streamed(weight)) {
      whole.fetched.push_back(weight);
      whole.leaving.push_back(weight);
    }
    if (plan.streamed(gradient)) whole.fetched.push_back(gradient);
  }
  for (const int32_t i : derived_weights_of(*plan.joint, weight)) {
    const int32_t packed = plan.joint->ops(graph::kRepack)[at(i)].out[0];
    if (!plan.streamed(packed)) continue;
    whole.made.push_back(packed);
    whole.leaving.push_back(packed);
  }
  for (const auto* list : {&whole.fetched, &whole.made})
    for (const int32_t v : *list) whole.bytes += aligned(plan, v);
  return whole;
}

bool streams_in_parts(const Lowered& plan, const JointOp& update) {
  if (plan.on_host(update)) return false;
  const int32_t weight = update.out[update_op::kParameter], gradient = update.in[update_op::kGrad];
  const auto fetched = [&](int32_t v) { return plan.homes.contains(v) && plan.streamed(v); };
  if (!fetched(weight) && !fetched(gradient)) return false;
  if (!derived_weights_of(*plan.joint, weight).empty()) return false;
  if (!ops::optimizer(update.attrs.word("optimizer")).is(ops::UPDATE_ELEMENTWISE)) return false;
  for (const int32_t state : states_of(update)) {
    if (plan.where(state, Point::kDeviceUpdate).on_device()) return false;
    for (const graph::Resident& known : plan.joint->residents)
      if (known.value == state && !known.splits) return false;
  }
  return true;
}

int64_t packing_bytes(const Lowered& plan, int32_t weight) {
  int64_t bytes = plan.streamed(weight) ? aligned(plan, weight) : 0;
  for (const int32_t i : derived_weights_of(*plan.joint, weight))
    if (const int32_t packed = plan.joint->ops(graph::kRepack)[at(i)].out[0]; plan.streamed(packed))
      bytes += aligned(plan, packed);
  return bytes;
}

int64_t between_steps_bytes(const Lowered& plan) {
  const graph::JointGraph& joint = *plan.joint;
  const auto workspace = [&](graph::PhaseIndex phase) {
    int64_t most = 0;
    for (const int32_t kernel : plan.op_kernel[phase])
      most = std::max(most, align_up(plan.kernels[at(kernel)]->workspace_bytes(), kAlignment));
    return most;
  };
  int64_t whole = 0, packing = 0, gradient = 0;
  for (const JointOp& update : joint.ops(graph::kUpdate)) {
    whole = std::max(whole, whole_values(plan, update).bytes);
    if (plan.streamed(update.in[update_op::kGrad]))
      gradient = std::max(gradient, norm_bytes(plan, update.in[update_op::kGrad]));
  }
  for (const JointOp& repack : joint.ops(graph::kRepack))
    packing = std::max(packing, packing_bytes(plan, repack.in[0]));
  return std::max(std::max(workspace(graph::kRepack), workspace(graph::kUpdate)) +
                      std::max(whole + least_ring_bytes(plan), packing),
                  workspace(graph::kGradientNorm) + gradient);
}

Lowered without_values(Lowered plan, const std::vector<bool>& gone) {
  std::vector<int32_t> now(gone.size(), -1);
  std::vector<plan::Value> values;
  for (size_t v = 0; v < gone.size(); ++v) {
    if (gone[v]) continue;
    now[v] = static_cast<int32_t>(values.size());
    values.push_back(std::move(plan.problem.values[v]));
  }
  plan.problem.values = std::move(values);
  const auto move = [&](int32_t& v) { v = v < 0 ? v : now[at(v)]; };
  for (int32_t& v : plan.problem_value) move(v);
  for (int32_t& v : plan.layout_value) move(v);
  for (plan::Op& op : plan.problem.ops)
    for (auto* list : {&op.inputs, &op.outputs}) {
      for (int32_t& v : *list) move(v);
      std::erase(*list, -1);
    }
  return plan;
}

}  // namespace cairn::engine
