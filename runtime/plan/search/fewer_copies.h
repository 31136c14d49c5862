// Of two equally fast plans, the one that copies fewer bytes is better. By the model a hidden copy costs nothing, but
// on the machine it takes memory bandwidth from compute.
#pragma once
#include "runtime/plan/search/search.h"

namespace cairn::plan {

// Keeps offloaded values on the device, as far as the plan remains within the budget and exactly as fast. So the plan
// for a larger budget, found without this, is still not slower.
Fit with_fewer_copies(Search&, Fit, int64_t budget);

}  // namespace cairn::plan
