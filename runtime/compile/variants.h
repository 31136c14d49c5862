// What else a budget can be met with than keep, recompute and offload: the same graph lowered another way.
#pragma once
#include <functional>

#include "runtime/compile/homes/vocabulary_parts.h"
#include "runtime/plan/cache.h"

namespace cairn::engine {

// The graph lowered once more, with these options and the budget of the first time.
using Relower = std::function<std::shared_ptr<CompiledPlan>(const graph::JointOptions&)>;
// What may go in parts.
using FindParts = std::function<PartUnits(const graph::JointOptions&)>;

// Solves the lowered plan's problem. Where the budget does not let everything be kept, its variants are
// tried, too: ops in place (in_place.h), packed weights given up (packed_weights_choice.h), then optimizer
// state in a tier (offloaded_state.h), and last of all weights of a vocabulary in parts. The one with the least seconds
// of a step is returned, without a budget the smallest; ties go to the first. solve_seconds is of the whole
// search; bound_seconds is a bound for all that was tried. kOverBudget: none fits; the smallest budget named
// is the least of all. cache: calls for other budgets of the same graph, before and after, share what they search.
std::shared_ptr<CompiledPlan> solve_variants(std::shared_ptr<CompiledPlan> lowered, const Relower& again,
                                             const FindParts& parts, const graph::JointOptions& joint,
                                             device::Device& device, const PlanOptions& options,
                                             plan::SolverCache& cache);

}  // namespace cairn::engine
