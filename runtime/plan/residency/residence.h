// Turns a problem with values that may live in tiers into one without. On the device such a value needs only room at every op that uses
// it, which becomes a part of the op's workspace.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/bound/bound.h"
#include "runtime/plan/problem.h"

namespace cairn::plan {

bool has_homes(const Problem&);

// Fresh values that may stay, and are not `away`, as values without a home that the last op reads. away: per value, whether it lives
// in its tier; where it has no choice, that is not looked at.
Problem stay_fresh(const Problem&, const std::vector<bool>& away);

// The problem with every choice made. A value that stays on the device becomes an input of the ops that change it. A fresh one stays an
// output.
Problem resolve_homes(const Problem&, const std::vector<bool>& away);

// An op's use of a value that lives in its tier.
struct HomeUse {
  int32_t value;
  bool reads, changes;
};
// Per op of a resolved problem, each value once.
std::vector<std::vector<HomeUse>> home_uses(const Problem& resolved);

// The same values, ops and links, but for values that live in their tier: no op uses them, they have no bytes, and each
// op's workspace has room for those it uses. Tiers have room for what does not live there.
Problem without_homes(const Problem& resolved);

// What the lower bound has to know about values that may live in their tier.
HomeReads home_reads(const Problem&);

}  // namespace cairn::plan
