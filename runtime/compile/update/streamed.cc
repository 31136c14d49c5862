#include "runtime/compile/update/streamed.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/compile/homes/homes.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

}  // namespace

int64_t stored_bytes(const graph::JointGraph& joint, int32_t value) {
  return align_up(joint.values[at(value)].desc.bytes(), kAlignment);
}

const Format& stored_format(const graph::JointGraph& joint, int32_t value) {
  const TensorDesc& desc = joint.values[at(value)].desc;
  return format(desc.packed_bytes > 0 ? DType::kBF16 : desc.dtype);
}

int64_t state_bytes(const graph::JointGraph& joint, const JointOp& update) {
  int64_t bytes = 0;
  for (const int32_t state : states_of(update)) bytes += stored_bytes(joint, state);
  return bytes;
}

std::vector<bool> splitting(const graph::JointGraph& joint) {
  std::vector<bool> splits(joint.values.size());
  for (const graph::Resident& state : joint.residents) splits[at(state.value)] = state.splits;
  return splits;
}

int64_t least_ring_bytes(const CompiledPlan& plan) {
  const graph::JointGraph& joint = *plan.joint;
  const std::vector<bool> splits = splitting(joint);
  int64_t states = 0, largest = 0;
  for (const JointOp& update : joint.ops(graph::kUpdate)) {
    if (plan.on_host(update)) continue;
    if (streams_in_parts(plan, update))
      for (const int32_t v : {update.out[update_op::kParameter], update.in[update_op::kGrad]})
        if (plan.streamed(v) != nullptr) states += stored_bytes(joint, v);
    const std::span<const int32_t> own = states_of(update);
    if (own.empty() || plan.streamed(own[0]) == nullptr) continue;
    const int64_t bytes = state_bytes(joint, update);
    states += bytes;
    if (!splits[at(own[0])]) largest = std::max(largest, bytes);
  }
  return std::max(std::min(states, kSlots * kMinPieceBytes), largest);
}

const OffloadedPlace* streamed_from(const CompiledPlan& plan, const JointOp& update) {
  if (plan.on_host(update)) return nullptr;
  const std::span<const int32_t> states = states_of(update);
  if (!states.empty() && plan.streamed(states[0]) != nullptr) return plan.streamed(states[0]);
  const WholeValues whole = whole_values(plan, update);
  for (const auto* list : {&whole.fetched, &whole.made})
    if (!list->empty()) return plan.streamed(list->front());
  if (!streams_in_parts(plan, update)) return nullptr;
  const OffloadedPlace* weight = plan.streamed(update.out[update_op::kParameter]);
  return weight != nullptr ? weight : plan.streamed(update.in[update_op::kGrad]);
}

std::span<const int32_t> states_of(const JointOp& update) {
  const size_t end = std::min(update.out.size(), static_cast<size_t>(update_op::kPacked));
  size_t count = update_op::kFirstState;
  while (count < end && update.out[count] >= 0) ++count;
  return std::span(update.out).subspan(update_op::kFirstState, count - update_op::kFirstState);
}

std::vector<int32_t> packed_weights_of(const graph::JointGraph& joint, int32_t weight) {
  std::vector<int32_t> packed_weights;
  for (size_t i = 0; i < joint.ops(graph::kRepack).size(); ++i)
    if (joint.ops(graph::kRepack)[i].in[0] == weight) packed_weights.push_back(static_cast<int32_t>(i));
  return packed_weights;
}

}  // namespace cairn::engine
