#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
std::shared_ptr<const JointGraph> derive(std::shared_ptr<const Graph> graph, const JointOptions& options) {
  require(graph != nullptr && graph->frozen(), Code::kWrongState, "the graph is not frozen");
  JointBuilder builder(std::move(graph));
  builder.joint.amp = options.amp;
  builder.joint.amp_rules = options.amp_rules;
  builder.joint.amp_choices = amp_choices(builder.forward, options.amp_rules);
  choose_formats(builder, options);
  add_forward(builder);
  if (builder.forward.trains()) {
    if (options.amp == AmpMode::kFp16) {
      require(!options.optimizer.name.empty(), Code::kUnsupported,
              "amp fp16 trains under a loss scale, which a stepper holds: it goes with an optimizer only; "
              "bf16 goes "
              "without");
      require(!options.fuse_update, Code::kUnsupported,
              "amp fp16 skips steps whose gradients are not finite, which is known only once all are there: "
              "it does "
              "not go with updates that are fused into backward; bf16 does");
      builder.joint.loss_scale =
          builder.add_value("optimizer/loss_scale", {DType::kF64, Shape{}}, Role::kScratch, kNone, -1);
    }
    add_backward(builder);
    fuse_backward(builder);
    split_parts(builder);
    add_slots(builder);
    if (!options.optimizer.name.empty()) add_optimizer(builder, options.optimizer);
    if (!options.optimizer.name.empty()) add_averages(builder, options.optimizer.average_decay);
    add_statistics(builder);
  } else {
    builder.joint.backward_begin = static_cast<int32_t>(builder.joint.ops().size());
    add_slots(builder);
  }
  if (!options.fuse_update) slice_parameters(builder, options.parts);
  add_derived_weights(builder, options);
  if (options.fuse_update && builder.joint.has_optimizer())
    fuse_updates(builder, options.updates_beside_backward);
  if (options.squares_in_backward && builder.joint.has_optimizer() && builder.joint.grad_scale < 0 &&
      builder.joint.slices.empty())
    add_squares(builder);
  if (!options.deferred_updates.empty() && !options.fuse_update)
    defer_updates(builder, options.deferred_updates);
  list_residents(builder);
  return std::make_shared<const JointGraph>(std::move(builder.joint));
}

const Slices* JointGraph::slices_of(int32_t whole) const {
  for (const Slices& of : slices)
    if (of.whole == whole) return &of;
  return nullptr;
}

int32_t JointGraph::find(std::string_view name) const {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].name == name) return static_cast<int32_t>(i);
  return -1;
}

}  // namespace cairn::graph
