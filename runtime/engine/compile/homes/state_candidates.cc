#include "runtime/engine/compile/homes/state_candidates.h"

#include <span>
#include <utility>

#include "runtime/engine/compile/cost_query.h"
#include "runtime/engine/compile/update/host_updates.h"
#include "runtime/engine/compile/update/streamed.h"
#include "runtime/engine/compile/update/traffic.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

// A weight that no op of the micro-batch reads, and the host reads through copies: its packs are what is
// used.
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

}  // namespace

// An optimizer without state has nothing to stream; its master weights stay, too.
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
    if (!read[at(weight)] && !packed_weights_of(joint, weight).empty())
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

}  // namespace cairn::engine
