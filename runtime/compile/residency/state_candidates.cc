#include "runtime/compile/residency/state_candidates.h"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/base/checked.h"
#include "runtime/compile/cost_query.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/streamed.h"
#include "runtime/compile/update/traffic.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

// By joint value: an op of the micro-batch reads it, or its storage through an alias. Of other weights only the
// packed forms are used.
std::vector<bool> read_by_ops(const graph::JointGraph& joint) {
  std::vector<bool> read(joint.values.size());
  for (const JointOp& op : joint.ops())
    for (const auto* list : {&op.in, &op.out})
      for (const int32_t v : *list)
        if (v >= 0) read[at(joint.storage(v))] = true;
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (joint.values[v].alias_of >= 0) read[at(joint.storage(static_cast<int32_t>(v)))] = true;
  return read;
}

// The room that it needs in a tier. Pieces begin at pages. Pieces of block formats end anywhere: at worst three of
// 8320 bytes take seven pages.
int64_t bytes_in_tier(const graph::JointGraph& joint, const StateCandidate& candidate) {
  const auto whole_pages = [&](int32_t v) { return format(joint.values[at(v)].desc.dtype).block == 1; };
  const bool whole = std::all_of(candidate.values.begin(), candidate.values.end(), whole_pages);
  return candidate.bytes + 2 * kPageBytes + (whole ? 0 : candidate.bytes / 6);
}

// Gives it to the first tier with room. False: none has room.
bool give_tier(Lowered& plan, const StateCandidate& candidate, size_t links) {
  for (size_t link = 0; link < std::min(links, plan.link_tier.size()); ++link) {
    int64_t& capacity = plan.problem.links[link].capacity_bytes;
    const int64_t needed = bytes_in_tier(*plan.joint, candidate);
    if (capacity < needed) continue;
    if (candidate.what == StateCandidate::What::kReached && !plan.reaches(plan.link_tier[link])) return false;
    capacity -= needed;
    for (const int32_t value : candidate.values) plan.offloaded[value] = {plan.link_tier[link], {}};
    return true;
  }
  return false;
}

}  // namespace

// An optimizer without states streams nothing, and its master weights are kept on the device.
std::vector<StateCandidate> state_candidates(const graph::JointGraph& joint, const costs::Model& costs) {
  const std::vector<bool> read = read_by_ops(joint);
  std::vector<StateCandidate> list;
  for (const JointOp& update : joint.ops(graph::kUpdate)) {
    const int32_t weight = update.out[update_op::kParameter];
    const std::span<const int32_t> states = states_of(update);
    if (states.empty()) continue;
    list.push_back({StateCandidate::What::kStates,
                    {states.begin(), states.end()},
                    state_bytes(joint, update),
                    costs.seconds(query_of(joint, update)).seconds});
    // What averages are of remains on the device.
    if (!joint.averages() && !read[at(weight)] && !derived_weights_of(joint, weight).empty())
      list.push_back({StateCandidate::What::kMaster, {weight}, stored_bytes(joint, weight), 0, states[0]});
  }
  return list;
}

void add_reached(const graph::JointGraph& joint, std::vector<StateCandidate>& list) {
  for (const JointOp& update : joint.ops(graph::kUpdate)) {
    const int32_t gradient = update.in[update_op::kGrad];
    StateCandidate candidate{StateCandidate::What::kReached, {gradient}, stored_bytes(joint, gradient)};
    if (const graph::Slices* slices = joint.slices_of(gradient))
      candidate.values.insert(candidate.values.end(), slices->parts.begin(), slices->parts.end());
    list.push_back(std::move(candidate));
  }
  for (const JointOp& op : joint.ops()) {
    if (op.code != ops::OpCode::k_update || states_of(op).empty()) continue;
    const std::span<const int32_t> states = states_of(op);
    list.push_back({StateCandidate::What::kReached, {states.begin(), states.end()}, state_bytes(joint, op)});
  }
}

Lowered with_tiers(Lowered from, const std::vector<StateCandidate>& candidates,
                   const std::vector<bool>& taken, size_t links) {
  std::vector<const StateCandidate*> order;
  for (size_t c = 0; c < candidates.size(); ++c)
    if (taken[c]) order.push_back(&candidates[c]);
  const auto is_master = [](const StateCandidate* c) { return c->what == StateCandidate::What::kMaster; };
  const auto give_all = [&](Lowered& plan) {
    bool all = true;
    for (const StateCandidate* c : order)  // a master weight is offloaded only with its states
      if (!is_master(c) || plan.offloaded.contains(c->state)) all = give_tier(plan, *c, links) && all;
    return all;
  };
  Lowered all = from;
  if (give_all(all)) return all;
  std::erase_if(order,
                [&](const StateCandidate* c) { return bytes_in_tier(*from.joint, *c) > 2 * c->bytes; });
  std::stable_sort(order.begin(), order.end(), [&](const StateCandidate* a, const StateCandidate* b) {
    return std::pair(is_master(a), -a->bytes) < std::pair(is_master(b), -b->bytes);
  });
  give_all(from);
  return from;
}

}  // namespace cairn::engine
