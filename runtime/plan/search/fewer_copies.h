// Of plans that are as fast, the one that moves fewer bytes: a copy that hides costs nothing by the model,
// but on the machine it takes memory bandwidth from compute.
#pragma once
#include "runtime/plan/search/search.h"

namespace cairn::plan {

// Keeps values that were sent over links, as far as the plan stays within the budget and exactly as fast: a
// larger budget's plan, found without this, is still no slower.
Fit with_fewer_copies(Search&, Fit, int64_t budget);

}  // namespace cairn::plan
