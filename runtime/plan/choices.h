// Free choices around a problem: persistent bytes that may leave the device for good, at a price in seconds.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/cache.h"

namespace cairn::plan {

// Persistent bytes that need not be on the device: optimizer state in a lower tier, a packed weight that is packed
// again at every use.
struct Choice {
  int64_t bytes = 0;   // of the problem's persistent values that leave the device if it is taken
  double seconds = 0;  // added per micro-batch if it is taken; not negative
};

// Which choices to take, so that the seconds of the fastest plan under problem.budget_bytes plus those of the choices
// are least. It takes the cheapest choices per byte, up to some number. None, if the plan without them runs every op
// once without waiting. All, if no plan fits with any number of them: then the smallest budget that the error names
// is the smallest there is. Deterministic; solves the problem for up to a dozen budgets. problem: with all of these
// bytes still in it.
std::vector<bool> choose(const Problem& problem, const std::vector<Choice>& choices, SolverCache& cache);
std::vector<bool> choose(const Problem& problem, const std::vector<Choice>& choices);

// Persistent bytes of which some may leave the device. Each costs seconds_per_byte then; `hidden` seconds of the sum
// cost nothing.
struct Leaving {
  int64_t bytes = 0;
  double seconds_per_byte = 0, hidden = 0;
};
// Whether a plan and the bytes that leave may take fewer seconds than the limit, by bounds that are quick to compute.
bool may_take_less(const Problem& problem, const Leaving& leaving, double limit);

}  // namespace cairn::plan
