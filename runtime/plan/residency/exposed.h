// Copies that no op hides: of what the first ops read and the last ones change.
#pragma once
#include <vector>

#include "runtime/plan/problem.h"

namespace cairn::plan {

// Per value: seconds that a plan in which everything lives in its tier takes longer because this comes first, before ops can hide it,
// or goes last. Of copies as early, and as late, as a link allows, and of forward and backward as they are: no op runs again.
std::vector<double> exposed_seconds(const Problem& resolved);

}  // namespace cairn::plan
