// Copies that no op hides: of what the first ops read and of what the last ops change.
#pragma once
#include <vector>

#include "runtime/plan/problem.h"

namespace cairn::plan {

// Per value: the seconds that a plan takes longer because this value is copied first, before ops can hide the copy,
// or last. Everything lives in its tier; copies run as early, and as late, as a link allows; forward and backward run
// as they are, with no op run again.
std::vector<double> exposed_seconds(const Problem& resolved);

}  // namespace cairn::plan
