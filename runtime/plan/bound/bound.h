// The certificate: a lower bound on the seconds of every plan of a problem under a budget. README.md, section
// "The bound", has the program and the proof.
#pragma once
#include "runtime/plan/index.h"

namespace cairn::plan {

// The best bound found and what decides it. Without pressure: program point -1, prices 0.
struct Bound {
  double seconds = 0;
  int32_t point = -1;       // the op at whose first start memory is scarce
  double byte_price = 0;    // seconds saved per byte more on the device at the program point
  double remake_price = 0;  // an op is worth running again if it takes at most this per byte it frees: what
                            // byte_price is without links. With links, time spent on it hides copies, too
};

// budget_bytes == 0: no limit. Meaningless (but finite) where no plan fits the budget. Pure; takes time in
// proportion to the ops, 10 to 100 passes over those before the program points looked at.
Bound lower_bound(const Problem&, const Index&, int64_t budget_bytes);

double lower_bound_seconds(const Problem&, const Index&, int64_t budget_bytes);

}  // namespace cairn::plan
