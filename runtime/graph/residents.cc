// All that persists, listed once it is known what does: by the kind of every value, whatever made it. And what the end of a
// step does to statistics.
#include <algorithm>
#include <span>
#include <tuple>

#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

class Lister {
 public:
  explicit Lister(JointGraph& joint)
      : joint_(joint), part_(joint.values.size()), made_(joint.values.size(), -1) {
    for (size_t p = 0; p < joint.parameters.size(); ++p)
      owner_[joint.parameters[p].source] = static_cast<int32_t>(p);
    for (const Slices& slices : joint.slices)
      for (const int32_t part : slices.parts) part_[static_cast<size_t>(part)] = true;
    for (size_t i = 0; i < joint.ops(kRepack).size(); ++i)
      made_[static_cast<size_t>(joint.ops(kRepack)[i].out[0])] = static_cast<int32_t>(i);
  }

  void run() {
    for (size_t v = 0; v < joint_.values.size(); ++v)
      if (kind(joint_.values[v].role).is(PERSISTS) && joint_.values[v].alias_of < 0 && !part_[v])
        joint_.residents.push_back(resident(static_cast<int32_t>(v)));
    const auto key = [](const Resident& r) { return std::tuple(r.owner < 0, r.owner, r.role); };
    std::stable_sort(joint_.residents.begin(), joint_.residents.end(),
                     [&](const Resident& a, const Resident& b) { return key(a) < key(b); });
  }

 private:
  Resident resident(int32_t v) const {
    const JointValue& value = joint_.values[static_cast<size_t>(v)];
    const KindRow& row = kind(value.role);
    Resident found{
        .name = value.name, .value = v, .role = value.role, .lifetime = row.lifetime, .saved = row.saved};
    if (row.is(OWNED)) {
      found.owner = owner_.at(value.source);
      const std::string& parameter = joint_.forward->values()[static_cast<size_t>(value.source)].name;
      const bool itself = joint_.parameters[static_cast<size_t>(found.owner)].value == v;
      found.name = itself ? parameter : cat(parameter, value.name.substr(value.name.rfind('/')));
      found.splits = row.is(SPLITS) && by_element(joint_.parameters[static_cast<size_t>(found.owner)]);
    }
    if (row.is(DERIVED)) {
      found.phase = kRepack;
      found.op = made_[static_cast<size_t>(v)];
    }
    return found;
  }

  // Its update takes one element after the other.
  bool by_element(const ParameterSlot& slot) const {
    if (slot.hyper < 0) return false;
    const HyperBlock& hyper = joint_.hypers[static_cast<size_t>(slot.hyper)];
    return joint_.groups[static_cast<size_t>(hyper.group)].optimizer->is(ops::UPDATE_ELEMENTWISE);
  }

  JointGraph& joint_;
  std::unordered_map<ValueId, int32_t> owner_;
  std::vector<bool> part_;     // by value: its bytes are those of another one
  std::vector<int32_t> made_;  // by value: the repacking's op that makes it
};

}  // namespace

// Each statistic moves by what ops of the micro-batches have summed up.
void add_statistics(JointBuilder& builder) {
  JointGraph& joint = builder.joint;
  for (const JointOp& sums : joint.ops()) {
    const int moved = ops::row(sums.code).operand(ops::OperandRole::kMoved);
    if (moved < 0) continue;
    const int32_t statistic = sums.in[static_cast<size_t>(moved)];
    JointOp op;
    op.code = ops::OpCode::k_move_mean;
    op.name = cat("move ", joint.values[static_cast<size_t>(statistic)].name);
    if (const AttrValue* momentum = sums.attrs.find("momentum")) op.attrs.set("momentum", *momentum);
    op.in = {sums.out[0]};
    op.out = {statistic};
    joint.ops(kStatistics).push_back(std::move(op));
  }
}

void list_residents(JointBuilder& builder) { Lister(builder.joint).run(); }

// Parameters are in the order of the graph.
const ParameterSlot* JointGraph::slot_of(int32_t parameter) const {
  const auto slot =
      std::lower_bound(parameters.begin(), parameters.end(), values[static_cast<size_t>(parameter)].source,
                       [](const ParameterSlot& a, ValueId source) { return a.source < source; });
  return slot == parameters.end() || slot->value != parameter ? nullptr : &*slot;
}

bool JointGraph::updated(int32_t parameter) const {
  const ParameterSlot* const slot = slot_of(parameter);
  return slot != nullptr && slot->hyper >= 0;
}

namespace {

// Without an allocation, for calls that must not fail any more.
std::span<const Resident> residents_of(const JointGraph& joint, const ParameterSlot* slot, Role role) {
  if (slot == nullptr) return {};
  // Residents are in the order of their owners and kinds.
  const auto owner = static_cast<int32_t>(slot - joint.parameters.data());
  const auto before = [&](const Resident& r, Role wanted) {
    return r.owner >= 0 && std::tuple(r.owner, r.role) < std::tuple(owner, wanted);
  };
  const auto first = std::lower_bound(joint.residents.begin(), joint.residents.end(), role, before);
  auto end = first;
  while (end != joint.residents.end() && end->owner == owner && end->role == role) ++end;
  return {first, end};
}

}  // namespace

std::vector<int32_t> JointGraph::owned(int32_t parameter, Role role) const {
  std::vector<int32_t> found;
  for (const Resident& r : residents_of(*this, slot_of(parameter), role)) found.push_back(r.value);
  return found;
}

int32_t JointGraph::low_of(int32_t parameter) const {
  const std::span<const Resident> low = residents_of(*this, slot_of(parameter), Role::kLow);
  return low.empty() ? -1 : low.front().value;
}

}  // namespace cairn::graph
