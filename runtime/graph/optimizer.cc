// What an optimizer adds to the joint graph: moments, scratch, and the ops of its update.
#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

// All gradients are summed into one number: the first overwrites what the last step left.
void add_norm(JointBuilder& builder, const ParameterSlot& slot) {
  JointGraph& joint = builder.joint;
  JointOp op;
  op.code = ops::OpCode::k_sum_squares;
  op.name = cat("squares ", joint.values[slot.gradient].name);
  op.in = {slot.gradient};
  op.out = {joint.norm};
  op.phase = Phase::kUpdate;
  op.accumulates = 1;
  op.first_writer = joint.norm_ops.empty() ? 1 : 0;
  joint.norm_ops.push_back(std::move(op));
}

void add_update(JointBuilder& builder, const ParameterSlot& slot) {
  JointGraph& joint = builder.joint;
  const bool decay = builder.forward.values()[slot.source].parameter.decay;
  JointOp op;
  op.code = ops::OpCode::k_adamw;
  op.name = cat("adamw ", joint.values[slot.value].name);
  op.in = {slot.gradient, joint.hyper[decay ? 1 : 0]};
  op.out = {slot.value, slot.moments[0], slot.moments[1]};
  op.phase = Phase::kUpdate;
  joint.update_ops.push_back(std::move(op));
}

}  // namespace

void add_optimizer(JointBuilder& builder, Optimizer optimizer) {
  JointGraph& joint = builder.joint;
  const auto count = static_cast<int32_t>(joint.values.size());
  std::unordered_map<ValueId, int32_t> gradient_of;
  for (int32_t v = 0; v < count; ++v)
    if (joint.values[v].role == Role::kGradient) gradient_of[joint.values[v].source] = v;
  for (int32_t v = 0; v < count; ++v) {
    if (joint.values[v].role != Role::kParameter) continue;
    ParameterSlot slot;
    slot.source = joint.values[v].source;
    slot.value = v;
    if (auto it = gradient_of.find(slot.source); it != gradient_of.end()) slot.gradient = it->second;
    if (slot.gradient >= 0 && optimizer == Optimizer::kAdamW)
      for (const char* moment : {"/m", "/v"})
        slot.moments.push_back(builder.add_value(joint.values[v].name + moment, joint.values[v].desc,
                                                 Role::kOptimizer, slot.source, joint.values[v].region));
    joint.parameters.push_back(std::move(slot));
  }
  if (optimizer == Optimizer::kNone) return;
  const TensorDesc row{DType::kF64, {8}};
  joint.hyper[0] = builder.add_value("optimizer/hyper.no_decay", row, Role::kScratch, kNone, -1);
  joint.hyper[1] = builder.add_value("optimizer/hyper.decay", row, Role::kScratch, kNone, -1);
  joint.norm = builder.add_value("optimizer/norm", {DType::kF64, Shape{}}, Role::kScratch, kNone, -1);
  for (const ParameterSlot& slot : joint.parameters) {
    if (slot.moments.size() != 2) continue;
    add_norm(builder, slot);
    add_update(builder, slot);
  }
}

}  // namespace cairn::graph
