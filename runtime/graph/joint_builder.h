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
  // Removes values that no op names any more; later ids become smaller. Only before slots and packed weights are added.
  void drop_values(const std::vector<bool>& dead);
  // behind: for each op of the micro-batch, the ops to insert after it.
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
// Replaces pairs of backward ops that one op can compute.
void fuse_backward(JointBuilder& builder);
// Where the graph has values of the effective batch: the parts of the micro-batch, one after the other.
void split_parts(JointBuilder& builder);
// Weights of a large vocabulary in parts; runs after add_slots and add_optimizer.
void slice_parameters(JointBuilder& builder, const PartRows& parts);
// Derived weights: decoded ones, and packed ones for backends that have them.
void add_derived_weights(JointBuilder& builder, const JointOptions& options);
// Moves updates into the backward part. It runs after all other passes, as it needs to know which ops read a weight.
// beside_backward: JointOptions::updates_beside_backward.
void fuse_updates(JointBuilder& builder, const std::set<std::string>& beside_backward);
// Adds sums of squares after the last op that writes each gradient. The ops that compute the norm from them remain.
void add_squares(JointBuilder& builder);
// Moves updates of these parameters before the ops that use them first.
void defer_updates(JointBuilder& builder, const std::set<std::string>& names);
// Slots of the parameters.
void add_slots(JointBuilder& builder);
// States, scratch, norm and updates of the optimizers.
void add_optimizer(JointBuilder& builder, const OptimizerOptions& options);
// Averages of parameters, and the ops that move them at the end of a step.
void add_averages(JointBuilder& builder, double decay);
// Ops that move statistics, at the end of a step.
void add_statistics(JointBuilder& builder);
// Lists the residents of all values that persist; runs last, when these are known.
void list_residents(JointBuilder& builder);

// groups.cc: the groups with their hyper-parameters checked; by value of the graph, the group of a parameter.
std::vector<ParameterGroup> make_groups(const OptimizerOptions& options);
// given: OptimizerOptions::groups.
std::vector<int32_t> assign_groups(const Graph& graph, std::span<const ParameterGroup> groups,
                                   std::span<const GroupOptions> given);

}  // namespace cairn::graph
