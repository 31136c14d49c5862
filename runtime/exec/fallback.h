// When a tier fails while a session runs, it goes on with a plan that does without that tier.
#pragma once
#include <memory>
#include <optional>

#include "runtime/compile/compile.h"

namespace cairn::engine {

// The same graph, kernels and persistent values, planned again without links to `tier` and within the arena of the
// plan. The planner decides for regions that were to offload there. Pure. kOverBudget: no such plan fits.
std::shared_ptr<const CompiledPlan> without_tier(const CompiledPlan& plan, Tier tier);

// Whether an unfinished micro-batch may run again from its start: none of its ops has an effect other than on
// gradients, and none must not run twice.
bool may_repeat(const CompiledPlan& plan);

// From inside a catch block: the error, if it is one of transfers to or from the disk tier that `plan` uses.
std::optional<Error> disk_failure(const CompiledPlan& plan);

}  // namespace cairn::engine
