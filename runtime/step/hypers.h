// Hyper-parameters of the optimizers while a model trains: the plan's parameter groups, with values of their
// own. Internal to runtime/step.
#pragma once
#include <vector>

#include "runtime/engine/exec/session.h"

namespace cairn::step {

// kInvalidArgument: these are not the plan's groups, a value is out of range, or it needs optimizer state
// that the plan does not have.
void check_groups(const graph::JointGraph& joint, const std::vector<graph::ParameterGroup>& groups);
// Writes what one update reads, with gradients multiplied by `factor`; t counts from 1.
void write_hypers(engine::Session& session, const std::vector<graph::ParameterGroup>& groups, double rate,
                  uint64_t t, double factor);

}  // namespace cairn::step
