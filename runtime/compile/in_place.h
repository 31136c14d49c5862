// Ops that write over what they read, as a free choice of the planner.
//
// The problem form cannot say that an output takes its input's bytes: outputs come to life before an op runs,
// inputs end after it. It can say it of a pair: where op B reads d, made by op A for B alone, element on
// element (inputs marked '=' in ops.def), one problem op "A+B" takes what both read, less d, and makes what
// both make, less d. It launches A, then B, and d is B's output before it is that: one value in the place of
// two.
#pragma once
#include "runtime/compile/program.h"

namespace cairn::engine {

// A pair needs one region, one phase and the same word on running again; A moves down to B or B up to A,
// where no op in between minds. Pairs that would need more than the larger of their halves stay apart. Chains
// of more than two come about one by one. Returns the number of ops that write over an input now; 0: the
// problem is as before.
int64_t make_in_place(CompiledPlan& plan);

}  // namespace cairn::engine
