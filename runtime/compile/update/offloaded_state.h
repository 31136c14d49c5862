// State that need not be on the device: optimizer state, and master weights that only packing reads, may have
// a place in a link's tier. The update streams them through the free part of the arena (update.cc), or uses them where
// they lie: on a host tier within the kernels' reach, where that costs nothing, gradients may live, too.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/compile/program.h"
#include "runtime/compile/update/host_forms.h"
#include "runtime/plan/cache.h"

namespace cairn::engine {

// kNothing: nothing has a home, a tier has no room for what has to live there, or nothing is gained. kOver: no plan fits, and the
// problem is the one that takes the least, with all gone that may leave. kSlower: nothing below the limit was found.
enum class Solved : uint8_t { kNothing, kOver, kSlower, kFits };
struct Outcome {
  Solved solved = Solved::kNothing;
  // Of kSlower and kFits: no plan of what was tried takes fewer for a micro-batch with its share of the update.
  double least_seconds = std::numeric_limits<double>::infinity();
};

// problem -> plan; which state leaves is chosen by plan::choose() and no longer part of the problem. Nothing
// leaves without a budget, a link, or an optimizer. limit: as below. quick: by a quick search, which finds nothing (kNothing) little
// above the smallest budget.
Outcome solve_with_offloaded_state(CompiledPlan& plan, device::Device& device, const PlanOptions& options,
                                   plan::SolverCache& cache, double limit, bool quick);

// Takes state, master weights and gradients out of the problem that kernels use where they then live, in the first tier: until
// so many bytes have left the device, as far as there are any. Returns how many have. The best plan is no slower for it.
int64_t move_within_reach(CompiledPlan& plan, device::Device& device, const PlanOptions& options,
                          int64_t bytes);

// All of that state leaves, and what else the budget is better without: weights and gradients are chosen by
// plan::solve() (homes/homes.h). limit: seconds of a micro-batch, with its share of the update, that are known to be possible;
// what cannot take less is not searched for. quick: as plan::SolverCache::solve_below().
Outcome solve_with_homes(CompiledPlan& plan, device::Device& device, const PlanOptions& options,
                         plan::SolverCache& cache, double limit, bool quick);

// The share of updates, by their state, that others have to make for the state of the rest to be so small a part of the budget that
// solve_with_homes() lets it stay, where its copies are dear. 0: all of it may, or updates are fused.
double staying_share(const CompiledPlan& plan);

// What solve_with_homes() would not get below where updates run on the host, as far as that is known before any search; nothing
// where nothing has a home, or there are several links.
std::optional<HostBound> host_bound(CompiledPlan plan, device::Device& device, const PlanOptions& options,
                                    bool states_stay, plan::SolverCache& cache);

}  // namespace cairn::engine
