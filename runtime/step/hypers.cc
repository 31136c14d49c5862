#include "runtime/step/hypers.h"

namespace cairn::step {
namespace {

std::string described(const std::vector<graph::ParameterGroup>& groups) {
  std::string text;
  for (const graph::ParameterGroup& group : groups) {
    text += cat(text.empty() ? "" : ", ", group.optimizer->name);
    if (!group.pattern.empty()) text += cat(" for '", group.pattern, '\'');
  }
  return text;
}

void check_hypers(const graph::ParameterGroup& planned, const graph::ParameterGroup& group) {
  const ops::OptimizerRow& row = *planned.optimizer;
  require(group.hypers.size() == row.hypers.size(), Code::kInvalidArgument, "'", row.name, "' has ",
          row.hypers.size(), " hyper-parameters, not ", group.hypers.size());
  for (size_t h = 0; h < row.hypers.size(); ++h) {
    const std::string_view name = row.hypers[h].name;
    ops::check_hyper(row, name, group.hypers[h]);
    for (const ops::OptimizerState& state : row.states)
      require(state.when != name || group.hypers[h] == 0 || planned.hypers[h] != 0, Code::kInvalidArgument,
              row.name, ": the plan was made with ", name, " 0, so that parameters have no state '",
              state.name, "'; make a plan with ", name, ' ', group.hypers[h]);
  }
}

}  // namespace

void check_groups(const graph::JointGraph& joint, const std::vector<graph::ParameterGroup>& groups) {
  const std::string planned = described(joint.groups), given = described(groups);
  require(planned == given, Code::kInvalidArgument, "the optimizer state is of ", given,
          "; the plan is made for ", planned);
  for (size_t g = 0; g < groups.size(); ++g) check_hypers(joint.groups[g], groups[g]);
}

void write_hypers(engine::Session& session, const std::vector<graph::ParameterGroup>& groups, double rate,
                  uint64_t t, double factor) {
  const graph::JointGraph& joint = *session.plan().joint;
  for (const graph::HyperBlock& block : joint.hypers) {
    const graph::ParameterGroup& group = groups[static_cast<size_t>(block.group)];
    std::vector<double> values = group.hypers;
    if (const int decay = group.optimizer->hyper("weight_decay"); decay >= 0 && !block.decays)
      values[static_cast<size_t>(decay)] = 0;
    double slots[update_op::kHyperSlots] = {};
    group.optimizer->rule(values, {rate * values[0], t, factor}, slots);
    slots[update_op::kFactorSlot] = factor;
    session.write(block.value, slots, sizeof slots);
  }
}

}  // namespace cairn::step
