#include "runtime/step/hypers.h"

#include <algorithm>

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
    require(!row.hypers[h].planned || group.hypers[h] == planned.hypers[h], Code::kInvalidArgument, row.name,
            ": the plan was made with ", name, ' ', planned.hypers[h],
            ", which is part of its kernels; make a plan with ", name, ' ', group.hypers[h]);
    for (const ops::OptimizerState& state : row.states)
      require(state.when != name || group.hypers[h] == 0 || planned.hypers[h] != 0, Code::kInvalidArgument,
              row.name, ": the plan was made with ", name, " 0, so that parameters have no state '",
              state.name, "'; make a plan with ", name, ' ', group.hypers[h]);
  }
  ops::check_hypers_together(row, group.hypers);
}

// Which hyper-parameter is an optimizer's momentum; -1: it has none.
int momentum_of(const ops::OptimizerRow& row) {
  const int momentum = row.hyper("momentum");
  return momentum >= 0 ? momentum : row.hyper("beta1");
}

}  // namespace

void check_groups(const graph::JointGraph& joint, const std::vector<graph::ParameterGroup>& groups) {
  const std::string planned = described(joint.groups), given = described(groups);
  require(planned == given, Code::kInvalidArgument, "the optimizer state is of ", given,
          "; the plan is made for ", planned);
  for (size_t g = 0; g < groups.size(); ++g) check_hypers(joint.groups[g], groups[g]);
}

void check_momentum(const graph::JointGraph& joint, const std::vector<graph::ParameterGroup>& groups,
                    const Schedule& schedule) {
  const auto cycles = std::find_if(schedule.stages.begin(), schedule.stages.end(), cycles_momentum);
  if (cycles == schedule.stages.end()) return;
  bool found = false;
  for (size_t g = 0; g < groups.size(); ++g) {
    const ops::OptimizerRow& row = *groups[g].optimizer;
    const int momentum = momentum_of(row);
    found = found || momentum >= 0;
    for (const ops::OptimizerState& state : row.states)
      require(momentum < 0 || state.when != row.hypers[static_cast<size_t>(momentum)].name ||
                  joint.groups[g].hypers[static_cast<size_t>(momentum)] != 0,
              Code::kInvalidArgument, "the schedule ", cycles->row->name, " cycles the momentum of ",
              row.name, ", and the plan was made with ", state.when, " 0, so that parameters have no state '",
              state.name, "'; make a plan with a ", state.when, ", or set cycle_momentum to false");
  }
  require(found, Code::kInvalidArgument, "the schedule ", cycles->row->name, " cycles the momentum, and ",
          described(groups), " has none; set cycle_momentum to false");
}

void write_hypers(engine::Session& session, const std::vector<graph::ParameterGroup>& groups,
                  const SchedulePoint& point, uint64_t t, double factor) {
  const graph::JointGraph& joint = *session.plan().joint;
  for (const graph::HyperBlock& block : joint.hypers) {
    const graph::ParameterGroup& group = groups[static_cast<size_t>(block.group)];
    std::vector<double> values = group.hypers;
    if (const int decay = group.optimizer->hyper("weight_decay"); decay >= 0 && !block.decays)
      values[static_cast<size_t>(decay)] = 0;
    if (const int momentum = momentum_of(*group.optimizer); momentum >= 0 && point.momentum)
      values[static_cast<size_t>(momentum)] = *point.momentum;
    double slots[update_op::kHyperSlots] = {};
    group.optimizer->rule(values, {point.rate * values[0], t, factor}, slots);
    slots[update_op::kFactorSlot] = factor;
    session.write(block.value, slots, sizeof slots);
  }
}

}  // namespace cairn::step
