// The certificate: a lower bound on the seconds of every plan of a problem under a budget. README.md has the
// proof.
#pragma once
#include "runtime/plan/index.h"

namespace cairn::plan {

// budget_bytes == 0: no limit. Meaningless (but finite) where no plan fits the budget.
double lower_bound_seconds(const Problem&, const Index&, int64_t budget_bytes);

}  // namespace cairn::plan
