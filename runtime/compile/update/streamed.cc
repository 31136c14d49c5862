#include "runtime/compile/update/streamed.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/compile/residency/homes.h"

namespace cairn::engine {
using graph::JointOp;

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

std::vector<bool> used_by_ops(const plan::Problem& problem) {
  std::vector<bool> used(problem.values.size());
  for (const plan::Op& op : problem.ops)
    for (const auto* list : {&op.inputs, &op.outputs})
      for (const int32_t v : *list) used[at(v)] = true;
  return used;
}

std::vector<size_t> first_readers(const plan::Problem& problem) {
  std::vector<size_t> first(problem.values.size(), problem.ops.size());
  for (size_t o = problem.ops.size(); o-- > 0;)
    for (const int32_t v : problem.ops[o].inputs) first[at(v)] = o;
  return first;
}

std::vector<bool> splitting(const graph::JointGraph& joint) {
  std::vector<bool> splits(joint.values.size());
  for (const graph::Resident& state : joint.residents) splits[at(state.value)] = state.splits;
  return splits;
}

int64_t least_ring_bytes(const Lowered& plan) {
  const graph::JointGraph& joint = *plan.joint;
  const std::vector<bool> splits = splitting(joint);
  int64_t states = 0, largest = 0;
  for (const JointOp& update : joint.ops(graph::kUpdate)) {
    if (plan.on_host(update)) continue;
    if (streams_in_parts(plan, update))
      for (const int32_t v : {update.out[update_op::kParameter], update.in[update_op::kGrad]})
        if (plan.streamed(v)) states += stored_bytes(joint, v);
    const std::span<const int32_t> own = states_of(update);
    if (own.empty() || !plan.streamed(own[0])) continue;
    const int64_t bytes = state_bytes(joint, update);
    states += bytes;
    if (!splits[at(own[0])]) largest = std::max(largest, bytes);
  }
  return std::max(std::min(states, kSlots * kMinPieceBytes), largest);
}

std::optional<Tier> streamed_from(const Lowered& plan, const JointOp& update) {
  if (plan.on_host(update)) return {};
  const std::span<const int32_t> states = states_of(update);
  std::vector<int32_t> values(states.begin(), states.begin() + (states.empty() ? 0 : 1));
  const WholeValues whole = whole_values(plan, update);
  values.insert(values.end(), whole.fetched.begin(), whole.fetched.end());
  values.insert(values.end(), whole.made.begin(), whole.made.end());
  if (streams_in_parts(plan, update))
    values.insert(values.end(), {update.out[update_op::kParameter], update.in[update_op::kGrad]});
  for (const int32_t value : values)
    if (const Where place = plan.where(value, Point::kDeviceUpdate); place.streamed()) return place.tier;
  return {};
}

std::span<const int32_t> states_of(const JointOp& update) {
  const size_t end = std::min(update.out.size(), static_cast<size_t>(update_op::kPacked));
  size_t count = update_op::kFirstState;
  while (count < end && update.out[count] >= 0) ++count;
  return std::span(update.out).subspan(update_op::kFirstState, count - update_op::kFirstState);
}

std::vector<int32_t> derived_weights_of(const graph::JointGraph& joint, int32_t weight) {
  std::vector<int32_t> packed_weights;
  for (size_t i = 0; i < joint.ops(graph::kRepack).size(); ++i)
    if (joint.ops(graph::kRepack)[i].in[0] == weight) packed_weights.push_back(static_cast<int32_t>(i));
  return packed_weights;
}

}  // namespace cairn::engine
