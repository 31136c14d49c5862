// Turns a problem with values that may live in tiers into one without. Such a value needs memory on the device only
// while an op uses it. So it becomes a part of that op's workspace.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/bound/bound.h"
#include "runtime/plan/problem.h"

namespace cairn::plan {

bool has_homes(const Problem&);

// The problem with fresh values that may be kept, and are not `away`, as ordinary values that the last op reads.
// away: per value, whether it lives in its tier; ignored for a value without that choice.
Problem stay_fresh(const Problem&, const std::vector<bool>& away);

// The problem with every choice made. A value that is kept on the device becomes an input of the ops that change it.
// A fresh one remains an output.
Problem resolve_homes(const Problem&, const std::vector<bool>& away);

// An op's use of a tier-resident value.
struct HomeUse {
  int32_t value;
  bool reads, changes;
};
// Per op of a resolved problem, each value once.
std::vector<std::vector<HomeUse>> home_uses(const Problem& resolved);

// The same values, ops and links, except for tier-resident values: no op uses them, they have no bytes, and the
// workspace of each op includes those it uses. Tiers have room for other values only where no tier-resident value
// lies.
Problem without_homes(const Problem& resolved);

// The uses of values that may live in their tier, as the lower bound needs them.
HomeReads home_reads(const Problem&);

}  // namespace cairn::plan
