// Ops that write over what they read, as a free choice of the planner.
//
// The problem cannot say that an output takes the bytes of an input: outputs come to life before an op runs, and
// inputs end after it. It can say it of a pair. Where op B alone reads d, which op A makes, and reads it element by
// element where it writes (inputs marked '=' in ops.def), one op "A+B" of the problem takes the inputs of both
// without d and makes the outputs of both without d. The program launches A, then B; d lies where B's output does.
#pragma once
#include <optional>

#include "runtime/compile/stages.h"

namespace cairn::engine {

// The problem with such pairs; nothing: no op can write over its input. Both halves of a pair have one region and one
// phase, and both may be recomputed or neither. A moves down to B, or B up to A, where no op in between forbids it.
// Pairs that would need more memory than the larger of their halves remain separate. Chains of more than two ops
// result pair by pair.
std::optional<Lowered> with_in_place(Lowered plan);

}  // namespace cairn::engine
