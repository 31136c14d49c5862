// Backends keep weights for their matrix units in a layout of their own. Such a packed weight is a value like
// any other: with a name, bytes, and an op that makes it, once per optimizer step. A pack may be left out;
// the ops that would read it then pack for themselves.
#include <map>
#include <tuple>

#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

// What is known of one packed weight: its value, or where it stands among those left out.
struct PackedWeight {
  int32_t value = -1, left_out = -1;
};

}  // namespace

void add_packed_weights(JointBuilder& builder, const JointOptions& options) {
  if (options.packed_bytes == nullptr) return;
  JointGraph& joint = builder.joint;
  std::map<std::tuple<int32_t, std::string, int64_t, DType, bool>, PackedWeight> packed_weights;
  for (size_t index = 0; index < joint.ops().size(); ++index)
    for (const ops::PackedUse& use : ops::packed_uses(ops::row(joint.ops()[index].code))) {
      JointOp& op = joint.ops()[index];
      const int32_t weight = op.in[use.weight];
      if (weight < 0 || joint.values[weight].role != Role::kParameter) continue;
      const TensorDesc desc = joint.values[weight].desc;
      const TensorDesc x = joint.values[op.in[0]].desc;
      const int64_t m = x.shape.rows();
      const std::string layout = options.one_packed_form ? "forward" : std::string(use.use);
      const bool leave_out = options.unpacked.contains({joint.values[weight].name, layout}) ||
                             (use.only_with >= 0 && op.in[use.only_with] < 0);
      const auto key = std::make_tuple(weight, layout, options.one_packed_form ? 0 : m, x.dtype, leave_out);
      if (!packed_weights.contains(key)) {
        const int64_t bytes = options.packed_bytes(desc, layout, m, x.dtype, options.threads);
        PackedWeight packed_weight;
        if (bytes > 0) {
          const JointValue from = joint.values[weight];
          TensorDesc packed = desc;
          packed.dtype = DType::kOpaque;
          packed.packed_bytes = bytes;
          JointOp node;
          node.code = OpCode::k_pack_weight;
          node.attrs = {{"use", layout}, {"m", m}, {"dtype", std::string(dtype_name(x.dtype))}};
          node.in = {weight};
          if (leave_out) {
            packed_weight.left_out = static_cast<int32_t>(joint.left_out.size());
            joint.left_out.push_back({std::move(node), packed});
          } else {
            packed_weight.value = builder.add_value(cat(from.name, "/packed.", layout), packed, Role::kPacked,
                                                    from.source, from.region);
            node.name = cat("pack ", joint.values[packed_weight.value].name);
            node.out = {packed_weight.value};
            joint.ops(kRepack).push_back(std::move(node));
            // An update may write it on the way.
            if (x.dtype != DType::kBF16)
              for (JointOp& update : joint.ops(kUpdate))
                if (update.out[update_op::kParameter] == weight)
                  update.attrs.set("packed_dtype", std::string(dtype_name(x.dtype)));
          }
        }
        packed_weights.emplace(key, packed_weight);
      }
      const PackedWeight& packed_weight = packed_weights.at(key);
      if (packed_weight.value >= 0) op.in[use.into] = packed_weight.value;
      if (packed_weight.left_out >= 0)
        joint.plain_uses.push_back({static_cast<int32_t>(index), use.into, packed_weight.left_out});
    }
}

}  // namespace cairn::graph
