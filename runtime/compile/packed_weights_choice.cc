#include "runtime/compile/packed_weights_choice.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "runtime/compile/cost_query.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

double pack_seconds(const graph::JointGraph& joint, const JointOp& node, const TensorDesc& packed,
                    const costs::Model& model) {
  Operands operands(joint, node);
  operands.out[0] = packed;
  operands.out_present = 1;
  return model.seconds(query_of(joint, node, operands)).seconds;
}

graph::PackedWeightUse use_of(const graph::JointGraph& joint, const JointOp& node) {
  return {joint.values[static_cast<size_t>(node.in[0])].name, std::string(node.attrs.word("use"))};
}

// Packed weights that one op reads are one group: a kernel may want both or none.
class Groups {
 public:
  explicit Groups(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t find(size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void unite(size_t a, size_t b) {
    const size_t one = find(a), other = find(b);
    parent_[std::max(one, other)] = std::min(one, other);
  }

 private:
  std::vector<size_t> parent_;
};

// Weights that an update changes, after the micro-batches or within them.
std::set<int32_t> updated_weights(const graph::JointGraph& joint) {
  std::set<int32_t> weights;
  for (const graph::ParameterSlot& slot : joint.parameters)
    if (slot.hyper >= 0) weights.insert(slot.value);
  return weights;
}

}  // namespace

PackedWeightChoices packed_weight_choices(const Lowered& plan, const costs::Model& model,
                                          int64_t micro_steps) {
  const graph::JointGraph& joint = *plan.joint;
  std::map<int32_t, size_t> node_of;  // packed weight -> the op of the repacking phase that makes it
  for (size_t n = 0; n < joint.ops(graph::kRepack).size(); ++n)
    node_of[joint.ops(graph::kRepack)[n].out[0]] = n;
  std::vector<int64_t> uses(joint.ops(graph::kRepack).size());
  Groups groups(joint.ops(graph::kRepack).size());
  std::map<graph::PackedWeightUse, size_t> same;  // one weight packed for several numbers of rows
  for (const auto& [pack, n] : node_of)
    groups.unite(same.emplace(use_of(joint, joint.ops(graph::kRepack)[n]), n).first->second, n);
  for (const JointOp& op : joint.ops()) {
    int64_t first = -1;
    for (const int32_t v : op.in) {
      const auto found = v < 0 ? node_of.end() : node_of.find(v);
      if (found == node_of.end()) continue;
      ++uses[found->second];
      if (first >= 0) groups.unite(static_cast<size_t>(first), found->second);
      first = static_cast<int64_t>(found->second);
    }
  }
  PackedWeightChoices result;
  const std::set<int32_t> updated = updated_weights(joint);
  std::map<size_t, size_t> choice_of;  // group -> choice
  for (const auto& [pack, n] : node_of) {
    const JointOp& node = joint.ops(graph::kRepack)[n];
    const auto [at, fresh] = choice_of.emplace(groups.find(n), result.choices.size());
    if (fresh) {
      result.choices.emplace_back();
      result.packed_weights.emplace_back();
    }
    plan::Choice& choice = result.choices[at->second];
    const double made =
        updated.contains(node.in[0]) ? 1 / static_cast<double>(std::max<int64_t>(1, micro_steps)) : 0;
    const double seconds = pack_seconds(joint, node, joint.values[static_cast<size_t>(pack)].desc, model) *
                           (static_cast<double>(uses[n]) - made);
    choice.bytes +=
        plan.problem.values[static_cast<size_t>(plan.problem_value[static_cast<size_t>(pack)])].bytes;
    choice.seconds += std::max(0.0, seconds);
    result.packed_weights[at->second].push_back(use_of(joint, node));
  }
  return result;
}

void leave_out(const PackedWeightChoices& from, const std::vector<bool>& taken, graph::JointOptions& joint) {
  for (size_t c = 0; c < from.packed_weights.size(); ++c)
    if (taken[c]) joint.unpacked.insert(from.packed_weights[c].begin(), from.packed_weights[c].end());
}

std::set<graph::PackedWeightUse> left_out(const Lowered& plan) {
  std::set<graph::PackedWeightUse> uses;
  for (const graph::UnpackedWeight& pack : plan.joint->left_out) uses.insert(use_of(*plan.joint, pack.node));
  return uses;
}

bool leave_out_useless(const Lowered& plan, const costs::Model& model, int64_t micro_steps,
                       graph::JointOptions& joint) {
  const PackedWeightChoices all = packed_weight_choices(plan, model, micro_steps);
  std::vector<bool> useless;
  for (const plan::Choice& choice : all.choices) useless.push_back(choice.seconds <= 0);
  leave_out(all, useless, joint);
  return std::find(useless.begin(), useless.end(), true) != useless.end();
}

costs::Answer op_seconds(const graph::JointGraph& joint, int32_t op, const costs::Model& model) {
  const JointOp& node = joint.ops()[static_cast<size_t>(op)];
  const costs::Answer plain = model.seconds(query_of(joint, node));
  const auto before = [](const graph::PlainUse& use, int32_t index) { return use.op < index; };
  auto use = std::lower_bound(joint.plain_uses.begin(), joint.plain_uses.end(), op, before);
  if (plain.measured || use == joint.plain_uses.end() || use->op != op) return plain;
  Operands operands(joint, node);
  double packing = 0;
  for (; use != joint.plain_uses.end() && use->op == op; ++use) {
    const graph::UnpackedWeight& pack = joint.left_out[static_cast<size_t>(use->pack)];
    operands.in[static_cast<size_t>(use->operand)] = pack.packed;
    operands.in_present |= 1u << use->operand;
    packing += pack_seconds(joint, pack.node, pack.packed, model);
  }
  costs::Answer packed = model.seconds(query_of(joint, node, operands));
  packed.seconds += packing;
  return packed;
}

int64_t packed_bytes(const Lowered& plan) {
  int64_t sum = 0;
  for (const graph::JointValue& value : plan.joint->values)
    if (graph::kind(value.role).is(graph::DERIVED)) sum += align_up(value.desc.bytes(), kAlignment);
  return sum;
}

int64_t unpacked_bytes(const Lowered& plan) {
  int64_t sum = 0;
  for (const graph::UnpackedWeight& pack : plan.joint->left_out)
    sum += align_up(pack.packed.bytes(), kAlignment);
  return sum;
}

}  // namespace cairn::engine
