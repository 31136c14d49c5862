// Recompute of several levels, for budgets that one level cannot meet: checkpoints between groups of stages
// by dynamic programming over (first, last, room), as rotor does for chains (Beaumont, Eyraud-Dubois,
// Herrmann, Joly, Shilova: Optimal checkpointing for heterogeneous chains, 2019).
#pragma once
#include <cstdint>

#include "runtime/plan/structure/options.h"

namespace cairn::plan {

// Retention points for `room` bytes besides persistent values; false if the recursion finds no way. Peaks inside a
// stage are estimates: evaluate the result. sets (without links): stages that are passed only once may keep some of
// their values from forward on. nullptr: every stage keeps only the value that leaves it, at most.
bool recurse(const Problem&, const Index&, const Intervals&, const Rules&, const Stages&, int64_t room,
             RetentionPoints& retention_points, const OptionSets* sets = nullptr);

}  // namespace cairn::plan
