// Hyper-parameters and parameter groups as a host gives them.
#pragma once
#include <vector>

#include "capi/src/structs.h"
#include "runtime/graph/joint.h"

namespace cairn::capi {

std::vector<graph::HyperSetting> read_hypers(const cairn_hyper_t* hypers, uint64_t count,
                                             std::string_view name);
graph::OptimizerOptions read_optimizer(const cairn_plan_options_t& options);
// AdamW's named fields, for the groups of which the plan's options say nothing else.
std::vector<graph::HyperSetting> adamw_fields(const cairn_stepper_options_t& options,
                                              const graph::JointGraph& joint);

}  // namespace cairn::capi
