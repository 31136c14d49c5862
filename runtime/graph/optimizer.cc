// What the optimizers add to the joint graph: slots of the parameters, states, scratch, and the ops of the
// gradients' norm and of the update.
#include "runtime/base/optimizers/stochastic.h"
#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

// All gradients are summed into one number: the first overwrites what the last step left.
void add_norm(JointGraph& joint, const ParameterSlot& slot) {
  JointOp op;
  op.code = ops::OpCode::k_sum_squares;
  op.name = cat("squares ", joint.values[slot.gradient].name);
  op.in = {slot.gradient};
  op.out = {joint.norm};
  op.accumulates = 1;
  op.first_writer = joint.ops(kGradientNorm).empty() ? 1 : 0;
  joint.ops(kGradientNorm).push_back(std::move(op));
}

// What an update changes in addition to the parameter. low: -1 where it is not split.
struct Updated {
  std::vector<int32_t> states;
  int32_t low = -1;
};

// stream: of random numbers, where the update rounds.
void add_update(JointGraph& joint, const ParameterSlot& slot, const Updated& updated, uint32_t stream) {
  const HyperBlock& hyper = joint.hypers[slot.hyper];
  const ParameterGroup& group = joint.groups[hyper.group];
  JointOp op;
  op.code = ops::OpCode::k_update;
  op.name = cat(group.optimizer->name, ' ', joint.values[slot.value].name);
  op.attrs = group.optimizer->attrs(group.hypers);
  if (updated.low >= 0)
    op.attrs.set("split", int64_t{1});
  else if (joint.values[slot.value].desc != joint.values[slot.gradient].desc)
    op.attrs.set("rng", static_cast<int64_t>(stream));
  op.in = {slot.gradient, hyper.value};
  op.out = {slot.value};
  op.out.insert(op.out.end(), updated.states.begin(), updated.states.end());
  if (updated.low >= 0) op.out.push_back(updated.low);
  joint.ops(kUpdate).push_back(std::move(op));
}

std::vector<int32_t> add_states(JointBuilder& builder, const ParameterSlot& slot,
                                const ParameterGroup& group) {
  std::vector<int32_t> states;
  const JointValue parameter = builder.joint.values[slot.value];
  const TensorDesc gradient = builder.joint.values[slot.gradient].desc;
  for (const ops::OptimizerState& state : group.optimizer->states)
    if (const auto desc = group.optimizer->tensor_of(state, group.hypers, gradient))
      states.push_back(builder.add_value(cat(parameter.name, '/', state.name), *desc, Role::kOptimizer,
                                         slot.source, parameter.region));
  return states;
}

// Of all groups that update a parameter, those without decay first.
void add_hypers(JointBuilder& builder, const std::vector<int32_t>& group_of) {
  JointGraph& joint = builder.joint;
  for (int32_t g = 0; g < static_cast<int32_t>(joint.groups.size()); ++g)
    for (const bool decays : {false, true}) {
      int32_t block = -1;
      for (ParameterSlot& slot : joint.parameters) {
        if (slot.gradient < 0 || group_of[slot.source] != g ||
            builder.forward.values()[slot.source].parameter.decay != decays)
          continue;
        if (block < 0) {
          const std::string group = g == 0 ? "" : cat(".group", g);
          block = static_cast<int32_t>(joint.hypers.size());
          joint.hypers.push_back(
              {builder.add_value(cat("optimizer/hyper", group, decays ? ".decay" : ".no_decay"),
                                 {DType::kF64, {update_op::kHyperSlots}}, Role::kScratch, kNone, -1),
               g, decays});
        }
        slot.hyper = block;
      }
    }
}

}  // namespace

void add_slots(JointBuilder& builder) {
  JointGraph& joint = builder.joint;
  std::unordered_map<ValueId, int32_t> gradient_of;
  const auto count = static_cast<int32_t>(joint.values.size());
  for (int32_t v = 0; v < count; ++v)
    if (joint.values[v].role == Role::kGradient) gradient_of[joint.values[v].source] = v;
  for (int32_t v = 0; v < count; ++v) {
    if (joint.values[v].role != Role::kParameter) continue;
    ParameterSlot slot;
    slot.source = joint.values[v].source;
    slot.value = v;
    if (auto it = gradient_of.find(slot.source); it != gradient_of.end()) slot.gradient = it->second;
    if (builder.formats[static_cast<size_t>(slot.source)] == DType::kSplit) {
      const JointValue high = joint.values[v];
      builder.add_value(cat(high.name, "/low"), {DType::kSplit, high.desc.shape}, Role::kLow, high.source,
                        high.region);
    }
    joint.parameters.push_back(std::move(slot));
  }
}

void add_optimizer(JointBuilder& builder, const OptimizerOptions& options) {
  JointGraph& joint = builder.joint;
  joint.groups = make_groups(options);
  const std::vector<int32_t> group_of = assign_groups(builder.forward, joint.groups, options.groups);
  std::unordered_map<ValueId, Updated> updated;  // by parameter
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (joint.values[v].role == Role::kLow) updated[joint.values[v].source].low = static_cast<int32_t>(v);
  for (const ParameterSlot& slot : joint.parameters)
    if (slot.gradient >= 0)
      updated[slot.source].states = add_states(builder, slot, joint.groups[group_of[slot.source]]);
  add_hypers(builder, group_of);
  joint.norm = builder.add_value("optimizer/norm", {DType::kF64, Shape{}}, Role::kScratch, kNone, -1);
  for (size_t p = 0; p < joint.parameters.size(); ++p) {
    if (joint.parameters[p].gradient < 0) continue;
    add_norm(joint, joint.parameters[p]);
    add_update(joint, joint.parameters[p], updated[joint.parameters[p].source], parameter_stream(p));
  }
}

void add_averages(JointBuilder& builder, double decay) {
  require(decay >= 0 && decay < 1, Code::kInvalidArgument, "the decay of averages of parameters (ema) is ",
          decay, "; it must be at least 0, which is for none, and below 1");
  if (decay == 0) return;
  JointGraph& joint = builder.joint;
  std::unordered_map<ValueId, int32_t> low;
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (joint.values[v].role == Role::kLow) low[joint.values[v].source] = static_cast<int32_t>(v);
  for (const ParameterSlot& slot : joint.parameters) {
    if (slot.hyper < 0) continue;
    const JointValue parameter = joint.values[slot.value];
    JointOp op;
    op.code = ops::OpCode::k_average;
    op.name = cat("average ", parameter.name);
    op.attrs = {{"decay", decay}};
    op.in = {slot.value};
    if (low.contains(slot.source)) op.in.push_back(low[slot.source]);
    op.out = {builder.add_value(cat(parameter.name, "/ema"), joint.values[slot.gradient].desc, Role::kAverage,
                                slot.source, parameter.region)};
    joint.ops(kStatistics).push_back(std::move(op));
    joint.averages_of.push_back(slot.value);
  }
}

}  // namespace cairn::graph
