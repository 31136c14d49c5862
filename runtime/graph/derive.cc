#include "runtime/graph/joint_builder.h"

namespace cairn::graph {

std::shared_ptr<const JointGraph> derive(std::shared_ptr<const Graph> graph, const JointOptions& options) {
  require(graph != nullptr && graph->frozen(), Code::kWrongState, "the graph is not frozen");
  require(options.amp != AmpMode::kFp16, Code::kUnsupported,
          "amp fp16 is not there yet: it needs loss scaling; bf16 is");
  JointBuilder builder(std::move(graph));
  add_forward(builder, options.amp);
  if (builder.forward.trains()) {
    add_backward(builder);
    add_optimizer(builder, options.optimizer);
  } else {
    builder.joint.turnaround = static_cast<int32_t>(builder.joint.ops.size());
    add_optimizer(builder, Optimizer::kNone);  // slots of the parameters alone
  }
  add_packs(builder, options);
  return std::make_shared<const JointGraph>(std::move(builder.joint));
}

int32_t JointGraph::find(std::string_view name) const {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].name == name) return static_cast<int32_t>(i);
  return -1;
}

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
  // Two rows of hyper-parameters: tensors with weight decay, and those without.
  joint.hyper = builder.add_value("optimizer/hyper", {DType::kF64, {2, 8}}, Role::kScratch, kNone, -1);
  joint.norm = builder.add_value("optimizer/norm", {DType::kF64, Shape{}}, Role::kScratch, kNone, -1);
}

}  // namespace cairn::graph
