// Free choices around a problem: persistent bytes that may leave the device for good, at a price in seconds.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/cache.h"

namespace cairn::plan {

// Something persistent that need not be on the device: optimizer state in a lower tier, a packed weight that
// is packed again at every use.
struct Choice {
  int64_t bytes = 0;   // of the problem's persistent values that leave the device if it is taken
  double seconds = 0;  // added per micro-batch then; not negative
};

// Which choices to take, so that the fastest plan under problem.budget_bytes plus their seconds is least.
// Taken are always the cheapest per byte, up to some point; none if the plan without them runs everything
// once without waiting; all if no number of them lets a plan fit, so that the smallest budget named for the
// problem without them is the smallest there is. Deterministic; solves the problem for up to a dozen budgets.
// problem: with everything that may leave still in it.
std::vector<bool> choose(const Problem& problem, const std::vector<Choice>& choices, SolverCache& cache);
std::vector<bool> choose(const Problem& problem, const std::vector<Choice>& choices);

// Persistent bytes some of which may leave: each takes so long then, but for `hidden` seconds of all of them.
struct Leaving {
  int64_t bytes = 0;
  double seconds_per_byte = 0, hidden = 0;
};
// Whether a plan and what leaves may take fewer seconds than the limit, by bounds that are quick to see.
bool may_take_less(const Problem& problem, const Leaving& leaving, double limit);

}  // namespace cairn::plan
