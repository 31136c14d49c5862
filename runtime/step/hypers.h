// Hyper-parameters of the optimizers while a model trains: the plan's parameter groups, with values of their
// own. Internal to runtime/step.
#pragma once
#include <vector>

#include "runtime/exec/session.h"
#include "runtime/step/schedule.h"

namespace cairn::step {

// kInvalidArgument: these are not the plan's groups, a value is out of range, or it needs optimizer state
// that the plan does not have.
void check_groups(const graph::JointGraph& joint, const std::vector<graph::ParameterGroup>& groups);
// kInvalidArgument: the schedule has a momentum for updates, and no optimizer of the groups has one, or the
// plan keeps no state for it.
void check_momentum(const graph::JointGraph& joint, const std::vector<graph::ParameterGroup>& groups,
                    const Schedule& schedule);
// Writes what one update reads, with gradients multiplied by `factor`; t counts from 1. A momentum of the
// schedule takes the place of every group's own.
void write_hypers(engine::Session& session, const std::vector<graph::ParameterGroup>& groups,
                  const SchedulePoint& point, uint64_t t, double factor);

}  // namespace cairn::step
