#include "runtime/compile/derived_weights.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "runtime/compile/cost_query.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

double making_seconds(const graph::JointGraph& joint, const JointOp& node, const TensorDesc& made,
                      const costs::Model& model) {
  Operands operands(joint, node);
  operands.out[0] = made;
  operands.out_present = 1;
  return model.seconds(query_of(joint, node, operands)).seconds;
}

bool in_blocks(const TensorDesc& d) { return format(d.dtype).read == Read::kDequantised; }

// What the op saves that reads weights packed and not the blocks that they are made of. makers: of packed operands.
double saved_seconds(const graph::JointGraph& joint, const JointOp& node,
                     const std::vector<std::pair<size_t, const JointOp*>>& makers,
                     const costs::Model& model) {
  Operands operands(joint, node);
  const double packed = model.seconds(query_of(joint, node, operands)).seconds;
  for (const auto& [operand, maker] : makers) {
    const auto uses = ops::packed_uses(ops::row(node.code));
    const bool own = std::ranges::any_of(
        uses, [&, at = operand](const ops::PackedUse& use) { return static_cast<size_t>(use.weight) == at; });
    operands.in[operand] = own ? joint.values[static_cast<size_t>(maker->in[0])].desc : TensorDesc();
    if (!own) operands.in_present &= ~(1u << operand);
  }
  return model.seconds(query_of(joint, node, operands)).seconds - packed;
}

// Derived weights that one op reads are one group: a kernel may want both or none.
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

// Plans treat it as they do activations.
bool as_activation(const graph::JointGraph& joint, const JointOp& node) {
  const graph::Role role = joint.values[static_cast<size_t>(node.out[0])].role;
  return graph::kind(role).counted == graph::Counted::kActivations;
}

// A policy for activations holds for what the op makes, and is not to keep it.
bool moved_by_policy(const Lowered& plan, const JointOp& node, Policy otherwise) {
  Policy policy = plan.joint->forward->regions().empty() ? otherwise : Policy::kPlannerDecides;
  for (int32_t r = node.region; r >= 0 && policy == Policy::kPlannerDecides;) {
    const plan::Region& region = plan.problem.regions[static_cast<size_t>(r)];
    policy = region.policy;
    r = region.parent;
  }
  return policy == Policy::kRecompute || policy == Policy::kOffload;
}

bool limited(const PlanOptions& options) {
  return options.budget_bytes > 0 || options.budget_share > 0 || options.smallest_budget ||
         (options.costs != nullptr && options.costs->model);
}

}  // namespace

DerivedWeightChoices derived_weight_choices(const Lowered& plan, const costs::Model& model,
                                            int64_t micro_steps) {
  const graph::JointGraph& joint = *plan.joint;
  const std::vector<JointOp>& nodes = joint.ops(graph::kRepack);
  std::map<int32_t, size_t> node_of;  // derived weight -> the op of the repacking phase that makes it
  for (size_t n = 0; n < nodes.size(); ++n) node_of[nodes[n].out[0]] = n;
  std::vector<int64_t> uses(nodes.size());
  Groups groups(nodes.size());
  std::map<graph::DerivedUse, size_t> same;  // one weight packed for several numbers of rows
  for (const auto& [value, n] : node_of)
    groups.unite(same.emplace(graph::use_of(joint, nodes[n]), n).first->second, n);
  std::vector<double> saved(nodes.size());  // by ops that read blocks themselves without it
  for (const JointOp& op : joint.ops()) {
    int64_t first = -1;
    std::vector<std::pair<size_t, const JointOp*>> makers;
    for (size_t i = 0; i < op.in.size(); ++i) {
      const int32_t v = op.in[i];
      const auto found = v < 0 ? node_of.end() : node_of.find(v);
      if (found == node_of.end()) continue;
      const JointOp& node = nodes[found->second];
      ++uses[found->second];
      if (first >= 0) groups.unite(static_cast<size_t>(first), found->second);
      first = static_cast<int64_t>(found->second);
      if (node.code == ops::OpCode::k_pack_weight &&
          in_blocks(joint.values[static_cast<size_t>(node.in[0])].desc))
        makers.emplace_back(i, &node);
    }
    if (!makers.empty()) saved[static_cast<size_t>(first)] += saved_seconds(joint, op, makers, model);
  }
  DerivedWeightChoices result;
  std::map<size_t, size_t> choice_of;  // group -> choice
  for (const auto& [value, n] : node_of) {
    const JointOp& node = nodes[n];
    const auto [at, fresh] = choice_of.emplace(groups.find(n), result.choices.size());
    if (fresh) {
      result.choices.emplace_back();
      result.uses.emplace_back();
      result.activations.push_back(as_activation(joint, node));
    }
    plan::Choice& choice = result.choices[at->second];
    const double made =
        joint.updated(node.in[0]) ? 1 / static_cast<double>(std::max<int64_t>(1, micro_steps)) : 0;
    const double seconds = making_seconds(joint, node, joint.values[static_cast<size_t>(value)].desc, model) *
                           (static_cast<double>(uses[n]) - made);
    choice.bytes +=
        plan.problem.values[static_cast<size_t>(plan.problem_value[static_cast<size_t>(value)])].bytes;
    choice.seconds += std::max(0.0, in_blocks(joint.values[static_cast<size_t>(node.in[0])].desc) &&
                                            node.code == ops::OpCode::k_pack_weight
                                        ? saved[n]
                                        : seconds);
    result.uses[at->second].push_back(graph::use_of(joint, node));
  }
  return result;
}

void leave_out(const DerivedWeightChoices& from, const std::vector<bool>& taken, graph::JointOptions& joint) {
  for (size_t c = 0; c < from.uses.size(); ++c)
    if (taken[c]) joint.not_kept.insert(from.uses[c].begin(), from.uses[c].end());
}

std::set<graph::DerivedUse> not_kept(const Lowered& plan) {
  std::set<graph::DerivedUse> uses;
  for (const graph::NotKept& derived : plan.joint->not_kept)
    uses.insert(graph::use_of(*plan.joint, derived.node));
  return uses;
}

bool leave_out_useless(std::span<const Lowered> plans, size_t primary, const costs::Model& model,
                       const PlanOptions& options, graph::JointOptions& joint) {
  const size_t before = joint.not_kept.size();
  const DerivedWeightChoices all = derived_weight_choices(plans[primary], model, options.micro_steps);
  std::vector<bool> useless;
  std::set<graph::DerivedUse> of_primary;
  for (size_t c = 0; c < all.choices.size(); ++c) {
    useless.push_back(all.choices[c].seconds <= 0);
    of_primary.insert(all.uses[c].begin(), all.uses[c].end());
  }
  leave_out(all, useless, joint);
  const bool none = !plans[primary].joint->forward->trains() && !limited(options);
  for (const Lowered& plan : plans)
    for (const JointOp& node : plan.joint->ops(graph::kRepack))
      if (const graph::DerivedUse use = graph::use_of(*plan.joint, node);
          as_activation(*plan.joint, node) &&
          (none || !of_primary.contains(use) || moved_by_policy(plan, node, options.policy)))
        joint.not_kept.insert(use);
  return joint.not_kept.size() > before;
}

costs::Answer op_seconds(const graph::JointGraph& joint, int32_t op, const costs::Model& model) {
  return op_seconds(joint, op, Operands(joint, joint.ops()[static_cast<size_t>(op)]), model);
}

costs::Answer op_seconds(const graph::JointGraph& joint, int32_t op, Operands operands,
                         const costs::Model& model) {
  const JointOp& node = joint.ops()[static_cast<size_t>(op)];
  const costs::Answer plain = model.seconds(query_of(joint, node, operands));
  const auto before = [](const graph::PlainUse& use, int32_t index) { return use.op < index; };
  auto use = std::lower_bound(joint.plain_uses.begin(), joint.plain_uses.end(), op, before);
  if (plain.measured || use == joint.plain_uses.end() || use->op != op) return plain;
  // The op's work is that of reading blocks.
  if (in_blocks(
          joint.values[static_cast<size_t>(joint.not_kept[static_cast<size_t>(use->pack)].node.in[0])].desc))
    return plain;
  double packing = 0;
  for (; use != joint.plain_uses.end() && use->op == op; ++use) {
    const graph::NotKept& pack = joint.not_kept[static_cast<size_t>(use->pack)];
    operands.in[static_cast<size_t>(use->operand)] = pack.made;
    operands.in_present |= 1u << use->operand;
    packing += making_seconds(joint, pack.node, pack.made, model);
  }
  costs::Answer packed = model.seconds(query_of(joint, node, operands));
  packed.seconds += packing;
  return packed;
}

int64_t derived_bytes(const Lowered& plan) {
  int64_t sum = 0;
  for (const graph::JointValue& value : plan.joint->values)
    if (graph::kind(value.role).is(graph::DERIVED)) sum += align_up(value.desc.bytes(), kAlignment);
  return sum;
}

int64_t kept_bytes(const Lowered& plan, graph::Role role) {
  int64_t sum = 0;
  for (const graph::JointValue& value : plan.joint->values)
    if (value.role == role) sum += align_up(value.desc.bytes(), kAlignment);
  return sum;
}

int64_t not_kept_bytes(const Lowered& plan, graph::Role role) {
  int64_t sum = 0;
  for (const graph::NotKept& derived : plan.joint->not_kept)
    if (derived.role == role) sum += align_up(derived.made.bytes(), kAlignment);
  return sum;
}

}  // namespace cairn::engine
