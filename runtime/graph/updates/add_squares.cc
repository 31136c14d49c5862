// Computes a gradient's sum of squares right after the last op of the micro-batch that adds to it, so that an offloaded gradient
// need not be fetched again for the norm. Every micro-batch computes them; those of the last one are of the summed gradient.
#include "runtime/graph/joint_builder.h"

namespace cairn::graph {

void add_squares(JointBuilder& builder) {
  JointGraph& joint = builder.joint;
  std::vector<int32_t> last(joint.values.size(), -1);  // op that writes it
  for (size_t i = 0; i < joint.ops().size(); ++i)
    for (const int32_t v : joint.ops()[i].out)
      if (v >= 0) last[joint.storage(v)] = static_cast<int32_t>(i);
  std::vector<std::vector<JointOp>> behind(joint.ops().size());
  for (const JointOp& norm : joint.ops(kGradientNorm)) {
    const int32_t gradient = norm.in[0];
    for (ParameterSlot& slot : joint.parameters) {
      if (slot.gradient != gradient) continue;
      slot.squares = builder.add_value(cat(joint.values[slot.value].name, "/squares"), {DType::kF64, Shape{}},
                                       Role::kScratch, kNone, -1);
      JointOp op = norm;
      op.out = {slot.squares};
      op.accumulates = op.first_writer = 0;
      op.backward = true;
      op.region = joint.ops()[last.at(gradient)].region;
      op.part = joint.ops()[last.at(gradient)].part;
      behind[last[gradient]].push_back(std::move(op));
    }
  }
  builder.insert(std::move(behind));
  joint.squares_in_backward = true;
}

}  // namespace cairn::graph
