// Updates deferred into the next forward part: a parameter is updated right before the op of the next micro-batch that uses it
// first, so that its states are copied while forward ops run. Nothing reads the parameter before that, so the numbers are the
// same.
#include <algorithm>

#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

constexpr int32_t kNobody = -1;

// Per value: the op that uses it first.
std::vector<int32_t> first_users(const JointGraph& joint) {
  std::vector<int32_t> first(joint.values.size(), kNobody);
  for (size_t i = joint.ops().size(); i-- > 0;)
    for (const auto* list : {&joint.ops()[i].in, &joint.ops()[i].out})
      for (const int32_t v : *list)
        if (v >= 0) first[joint.storage(v)] = static_cast<int32_t>(i);
  return first;
}

}  // namespace

void defer_updates(JointBuilder& builder, const std::set<std::string>& names) {
  JointGraph& joint = builder.joint;
  const std::vector<int32_t> first = first_users(joint);
  std::vector<std::vector<JointOp>> behind(joint.ops().size());
  std::vector<JointOp> rest;
  for (JointOp& update : joint.ops(kUpdate)) {
    const int32_t parameter = update.out[update_op::kParameter];
    const int32_t user = first[parameter];
    // Before the first op nothing runs that a copy could overlap with.
    if (user < 1 || user >= joint.backward_begin || !names.contains(joint.values[parameter].name)) {
      rest.push_back(std::move(update));
      continue;
    }
    for (ParameterSlot& slot : joint.parameters)
      if (slot.value == parameter) slot.deferred = true;
    update.deferred = true;
    update.region = joint.ops()[user].region;
    behind[user - 1].push_back(std::move(update));
    joint.updates_deferred = true;
  }
  joint.ops(kUpdate) = std::move(rest);
  builder.insert(std::move(behind));
}

}  // namespace cairn::graph
