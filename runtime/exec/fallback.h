// What a session does when a tier fails while it runs: go on with a plan that does without.
#pragma once
#include <memory>
#include <optional>

#include "runtime/compile/program.h"

namespace cairn::engine {

// The same graph, kernels and persistent places, planned again without links to `tier`, within the arena that
// the plan has. Regions that were to offload there are the planner's to decide. Pure. kOverBudget: no such
// plan fits.
std::shared_ptr<const CompiledPlan> without_tier(const CompiledPlan& plan, Tier tier);

// Whether a micro-batch that was not finished may run once more from its start: no op of it has an effect of
// its own, gradients apart, or must not run twice.
bool may_repeat(const CompiledPlan& plan);

// From inside a catch block: the error, if it is one of transfers to or from the disk tier that `plan` uses.
std::optional<Error> disk_failure(const CompiledPlan& plan);

}  // namespace cairn::engine
