// What a plan says about itself besides its steps: decisions and reasons per value, totals, and, where no
// plan fits, what would.
#pragma once
#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {

struct Rules;

// Fills Plan::values and Plan::totals from the steps (offsets assigned).
void explain(const Problem&, const Index&, const Rules&, Plan&);

// The highest total bytes of activations over the plan's steps; persistent values and workspace do not count.
// activations: per value. The problem itself does not know what a value is: a weight's gradient need not persist
// either.
int64_t activation_peak(const Problem&, const Plan&, const std::vector<bool>& activations);

// Throws kOverBudget: `smallest` is the plan with the lowest arena.
[[noreturn]] void fail_over_budget(const Problem&, const Index&, const Plan& smallest);

}  // namespace cairn::plan
