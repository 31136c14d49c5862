// State that need not be on the device: optimizer state, and master weights that only packing reads, may have a
// place in a link's tier. The update streams them through the free part of the arena (update.cc), or uses them
// where they lie: on a host tier within the kernels' reach, where that costs nothing, gradients may live, too.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/compile/stages.h"
#include "runtime/compile/update/host_forms.h"
#include "runtime/plan/cache.h"

namespace cairn::engine {

// kNothing: no value may live in a tier, a tier has no room for what has to live there, or nothing is gained.
// kOver: no plan fits. kSlower: nothing below the limit was found.
enum class Solved : uint8_t { kNothing, kOver, kSlower, kFits };
struct Outcome {
  Solved solved = Solved::kNothing;
  // Of kSlower and kFits: no plan of what was tried takes fewer seconds for a micro-batch with its share of the
  // update.
  double least_seconds = std::numeric_limits<double>::infinity();
  // Of kFits: the plan. Of kOver, without its solution: the problem that takes the least, with all offloaded that
  // may be.
  std::shared_ptr<const Planned> plan = {};
};

// Solves the problem without the state that plan::choose() offloads. Nothing leaves without a budget, a link, or an
// optimizer. limit: as below. quick: a quick search, which finds nothing (kNothing) little above the smallest
// budget.
Outcome solve_with_offloaded_state(const Lowered& plan, device::Device& device, const PlanOptions& options,
                                   plan::SolverCache& cache, double limit, bool quick);

// The problem without state, master weights and gradients that kernels can use in place in the first tier: so many
// bytes of them, as far as there are any. The best plan is no slower for it. Nothing: there are none.
std::optional<Lowered> with_state_in_reach(const Lowered& plan, device::Device& device,
                                           const PlanOptions& options, int64_t bytes);

// Solves the problem with all of that state offloaded, and weights and gradients where plan::solve() chooses
// (residency/homes.h). limit: seconds of a micro-batch, with its share of the update, that are known to be possible;
// what cannot take less is not searched for. quick: as plan::SolverCache::solve_below().
Outcome solve_with_residencies(const Lowered& plan, device::Device& device, const PlanOptions& options,
                               plan::SolverCache& cache, double limit, bool quick);

// The share of updates, by their state, that the host has to make so that the state of the others becomes a small
// part of the budget. solve_with_residencies() then keeps it on the device, where its copies would take long. 0: all
// of it may be kept there, or updates are fused.
double staying_share(const Lowered& plan);

// What solve_with_residencies() cannot get below where updates run on the host, as far as that is known before any
// search. Nothing: no value may live in a tier, or there are several links.
std::optional<HostBound> host_bound(const Lowered& plan, device::Device& device, const PlanOptions& options,
                                    bool states_stay, plan::SolverCache& cache);

}  // namespace cairn::engine
