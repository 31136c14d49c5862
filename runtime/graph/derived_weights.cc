// What ops read in place of a parameter: packed in the layout of the backend's matrix units, or decoded from a format of
// blocks. Such a derived weight is a value like any other: with a name, bytes, and an op that makes it, whenever the
// parameter changed. It need not be kept. Then the ops that would read a packed one pack for themselves, those that read
// blocks decode them, and the op that decodes for all others is one of the micro-batch.
#include <map>
#include <tuple>

#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

// What is known of one packed weight: its value, or where it stands among those not kept.
struct PackedWeight {
  int32_t value = -1, not_kept = -1;
};

// Ops of the micro-batch that derive a weight become ops of kRepack.
void add_decoded(JointBuilder& builder, const JointOptions& options) {
  JointGraph& joint = builder.joint;
  std::vector<JointOp> rest;
  int32_t backward_begin = joint.backward_begin;
  for (size_t i = 0; i < joint.ops().size(); ++i) {
    JointOp& op = joint.ops()[i];
    const bool derives = ops::row(op.code).is(ops::DERIVES) &&
                         joint.values[op.in[0]].role == Role::kParameter &&
                         joint.values[op.out[0]].role == Role::kActivation;
    const DerivedUse use = derives ? use_of(joint, op) : DerivedUse();
    if (!derives || (options.not_kept.contains(use) && !joint.in_parts())) {
      if (derives) {
        joint.not_kept.push_back({op, joint.values[op.out[0]].desc, Role::kDecoded});
        joint.not_kept.back().node.out.clear();
      }
      rest.push_back(std::move(op));
      continue;
    }
    JointValue& decoded = joint.values[op.out[0]];
    decoded.name = builder.unique(cat(use.first, "/decoded.", use.second));
    decoded.role = Role::kDecoded;
    if (static_cast<int32_t>(i) < joint.backward_begin) --backward_begin;
    joint.ops(kRepack).push_back(std::move(op));
  }
  joint.ops() = std::move(rest);
  joint.backward_begin = backward_begin;
}

void add_packed(JointBuilder& builder, const JointOptions& options) {
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
      // "any": one form serves every use.
      const bool any =
          options.one_packed_form || options.packed_bytes(desc, "any", m, x.dtype, options.threads) > 0;
      const std::string layout = any ? "forward" : std::string(use.use);
      const bool leave_out = options.not_kept.contains({joint.values[weight].name, layout}) ||
                             (use.only_with >= 0 && op.in[use.only_with] < 0);
      const auto key = std::make_tuple(weight, layout, any ? 0 : m, x.dtype, leave_out);
      if (!packed_weights.contains(key)) {
        const int64_t bytes = options.packed_bytes(desc, layout, m, x.dtype, options.threads);
        PackedWeight packed_weight;
        const Role role = format(desc.dtype).read == Read::kDequantised ? Role::kDecoded : Role::kPacked;
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
            packed_weight.not_kept = static_cast<int32_t>(joint.not_kept.size());
            joint.not_kept.push_back({std::move(node), packed, role});
          } else {
            packed_weight.value =
                builder.add_value(cat(from.name, "/packed.", layout), packed, role, from.source, from.region);
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
      if (packed_weight.not_kept >= 0)
        joint.plain_uses.push_back({static_cast<int32_t>(index), use.into, packed_weight.not_kept});
    }
}

}  // namespace

DerivedUse use_of(const JointGraph& joint, const JointOp& node) {
  const char* const what = node.attrs.has("use") ? "use" : "dtype";
  return {joint.values[node.in[0]].name, std::string(node.attrs.word(what))};
}

void add_derived_weights(JointBuilder& builder, const JointOptions& options) {
  add_decoded(builder, options);
  if (options.packed_bytes != nullptr) add_packed(builder, options);
}

}  // namespace cairn::graph
