// The joint graph while it is made. Internal to runtime/graph.
#pragma once
#include <set>
#include <span>
#include <string>
#include <unordered_map>

#include "runtime/graph/joint.h"

namespace cairn::graph {

struct JointBuilder {
  JointGraph joint;
  const Graph& forward;
  std::vector<DType> formats;                  // by value of the graph: what a parameter is stored as
  std::unordered_map<std::string, int> names;  // how often a name was asked for

  explicit JointBuilder(std::shared_ptr<const Graph> graph) : forward(*graph) {
    joint.forward = std::move(graph);
  }

  std::string unique(std::string name) {
    const int n = names[name]++;
    return n == 0 ? name : cat(name, ".", n + 1);
  }
  int32_t add_value(std::string name, TensorDesc desc, Role role, ValueId source, RegionId region) {
    JointValue value;
    value.name = unique(std::move(name));
    value.desc = desc;
    value.role = role;
    value.source = source;
    value.region = region;
    joint.values.push_back(std::move(value));
    return static_cast<int32_t>(joint.values.size()) - 1;
  }
  // Values that no op names any more; ids behind them move down. Before there are slots and packed weights.
  void drop_values(const std::vector<bool>& dead);
  // behind: per op of the micro-batch, what is to follow it.
  void insert(std::vector<std::vector<JointOp>> behind);
  const TensorDesc& desc(int32_t value) const { return joint.values[value].desc; }
  bool trainable(int32_t value) const {
    const JointValue& v = joint.values[value];
    return v.role == Role::kParameter && !forward.values()[v.source].parameter.frozen;
  }
};

// JointBuilder::formats, as JointOptions::parameters and JointOptions::formats say.
void choose_formats(JointBuilder& builder, const JointOptions& options);
// Forward ops into joint.ops() with casts as joint.amp and joint.amp_choices want them; dead ops are left out.
void add_forward(JointBuilder& builder);
// Backward ops, gradients of parameters, backward_begin.
void add_backward(JointBuilder& builder);
// Pairs of backward ops that one op can do.
void fuse_backward(JointBuilder& builder);
// Weights in parts; Behind slots and optimizer.
void slice_parameters(JointBuilder& builder, const PartRows& parts);
// Packed forms of weights, for backends that have them.
void add_packed_weights(JointBuilder& builder, const JointOptions& options);
// Moves updates into the backward part: after everything else, as it asks who reads a weight. beside_backward:
// JointOptions::updates_beside_backward.
void fuse_updates(JointBuilder& builder, const std::set<std::string>& beside_backward);
// The squares of gradients, behind what writes them last; the norm's own ops stay.
void add_squares(JointBuilder& builder);
// Moves updates of these parameters before the ops that use them first.
void defer_updates(JointBuilder& builder, const std::set<std::string>& names);
// Slots of the parameters.
void add_slots(JointBuilder& builder);
// States, scratch, norm and updates of the optimizers.
void add_optimizer(JointBuilder& builder, const OptimizerOptions& options);
// Of all that persists; last, when it is known what does.
void list_states(JointBuilder& builder);

// groups.cc: the groups with their hyper-parameters checked; by value of the graph, the group of a parameter.
std::vector<ParameterGroup> make_groups(const OptimizerOptions& options);
// given: OptimizerOptions::groups.
std::vector<int32_t> assign_groups(const Graph& graph, std::span<const ParameterGroup> groups,
                                   std::span<const GroupOptions> given);

}  // namespace cairn::graph
