// Backends keep weights for their matrix units in a layout of their own. Such a pack is a value like any
// other: with a name, bytes, and an op that makes it, once per optimizer step.
#include <map>
#include <tuple>

#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

// Operands that a backend may want packed. `into`: the operand that takes the pack, if not the same.
constexpr struct {
  OpCode code;
  int rows_of, weight, into;
  const char* use;
} kUses[] = {
    {OpCode::k_linear, 0, 1, 1, "forward"},
    {OpCode::k_linear_grad_input, 0, 1, 1, "input_grad"},
    {OpCode::k_linear_cross_entropy, 0, 1, 1, "forward"},
    // The gradient's own product first: it reads operand 1 before that is replaced.
    {OpCode::k_linear_cross_entropy_grad, 0, 1, 4, "input_grad"},
    {OpCode::k_linear_cross_entropy_grad, 0, 1, 1, "forward"},
};

}  // namespace

void add_packs(JointBuilder& builder, const JointOptions& options) {
  if (options.packed_bytes == nullptr) return;
  JointGraph& joint = builder.joint;
  std::map<std::tuple<int32_t, std::string, int64_t, DType>, int32_t> packs;
  for (JointOp& op : joint.ops)
    for (const auto& use : kUses) {
      if (op.code != use.code) continue;
      const int32_t weight = op.in[use.weight];
      if (weight < 0 || joint.values[weight].role != Role::kParameter) continue;
      const TensorDesc desc = joint.values[weight].desc;
      const TensorDesc x = joint.values[op.in[use.rows_of]].desc;
      const int64_t m = x.shape.rows();
      const auto key = std::make_tuple(weight, std::string(use.use), m, x.dtype);
      if (!packs.contains(key)) {
        const int64_t bytes = options.packed_bytes(desc, use.use, m, x.dtype, options.threads);
        int32_t pack = -1;
        if (bytes > 0) {
          const JointValue from = joint.values[weight];
          TensorDesc packed = desc;
          packed.dtype = DType::kOpaque;
          packed.packed_bytes = bytes;
          pack = builder.add_value(cat(from.name, "/packed.", use.use), packed, Role::kPacked, from.source,
                                   from.region);
          JointOp node;
          node.code = OpCode::k_pack_weight;
          node.name = cat("pack ", joint.values[pack].name);
          node.attrs = {{"use", std::string(use.use)}, {"m", m}, {"dtype", std::string(dtype_name(x.dtype))}};
          node.in = {weight};
          node.out = {pack};
          node.phase = Phase::kPrologue;
          joint.prologue.push_back(std::move(node));
          for (ParameterSlot& slot : joint.parameters)
            if (slot.value == weight) slot.packs.push_back(pack);
        }
        packs.emplace(key, pack);
      }
      if (const int32_t pack = packs.at(key); pack >= 0) op.in[use.into] = pack;
    }
}

}  // namespace cairn::graph
