// Other ways to meet a budget than keep, recompute and offload: the same graph, lowered in another form.
#pragma once
#include <functional>

#include "runtime/compile/options.h"
#include "runtime/compile/residency/vocabulary_parts.h"
#include "runtime/plan/cache.h"

namespace cairn::engine {

// Lowers the graph with these options and the budget of the first time.
using Relower = std::function<std::shared_ptr<const Lowered>(const graph::JointOptions&)>;
// Finds what may be split.
using FindParts = std::function<PartUnits(const graph::JointOptions&)>;

// Solves the lowered problem. Where the budget does not let everything be kept, it tries variants: ops in place
// (in_place.h), fewer derived weights (derived_weights.h), residents in tiers (offloaded_state.h), updates on
// the host (host_forms.h), and last a split vocabulary. Returns the one whose step takes the fewest seconds,
// without a budget the smallest; of equals, the first. The plan's bound_seconds hold for all that was tried, its
// solve_seconds are of the whole search. kOverBudget: no variant fits; names the smallest budget that one would.
// cache: shares what is searched with calls for other budgets of the same graph.
Planned solve_variants(std::shared_ptr<const Lowered> lowered, const Relower& again, const FindParts& parts,
                       const graph::JointOptions& joint, device::Device& device, const PlanOptions& options,
                       plan::SolverCache& cache);

// The same with rows in tiles (tiles/tiles.h) where no plan fits without, or the fastest one computes much again.
Planned solve_with_tiles(std::shared_ptr<const Lowered> lowered, const Relower& again, const FindParts& parts,
                         const graph::JointOptions& joint, device::Device& device, const PlanOptions& options,
                         plan::SolverCache& cache);

}  // namespace cairn::engine
