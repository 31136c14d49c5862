#include "runtime/graph/joint_builder.h"

namespace cairn::graph {

void JointBuilder::drop_values(const std::vector<bool>& dead) {
  std::vector<int32_t> moved(joint.values.size());
  std::vector<JointValue> kept;
  for (size_t v = 0; v < joint.values.size(); ++v) {
    moved[v] = dead[v] ? -1 : static_cast<int32_t>(kept.size());
    if (!dead[v]) kept.push_back(std::move(joint.values[v]));
  }
  joint.values = std::move(kept);
  const auto move = [&](int32_t& v) { v = v < 0 ? v : moved[v]; };
  for (JointValue& value : joint.values) move(value.alias_of);
  for (JointOp& op : joint.ops()) {
    for (int32_t& v : op.in) move(v);
    for (int32_t& v : op.out) move(v);
  }
  move(joint.loss);
  move(joint.weight);
}

void JointBuilder::insert(std::vector<std::vector<JointOp>> behind) {
  std::vector<JointOp> ops;
  std::vector<int32_t> now(joint.ops().size());
  int32_t backward_begin = joint.backward_begin;
  for (size_t i = 0; i < joint.ops().size(); ++i) {
    if (static_cast<int32_t>(i) == joint.backward_begin) backward_begin = static_cast<int32_t>(ops.size());
    now[i] = static_cast<int32_t>(ops.size());
    ops.push_back(std::move(joint.ops()[i]));
    for (JointOp& op : behind[i]) ops.push_back(std::move(op));
  }
  for (PlainUse& use : joint.plain_uses) use.op = now[use.op];
  joint.ops() = std::move(ops);
  joint.backward_begin = backward_begin;
}

}  // namespace cairn::graph
