// Problems in which values have homes, made into problems without: what a value that lives in a tier needs on the
// device is room at every op that uses it.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/bound/bound.h"
#include "runtime/plan/problem.h"

namespace cairn::plan {

bool has_homes(const Problem&);

// Fresh values that may stay, and are not `away`, as values without a home that the last op reads. away: per value, whether it lives
// at home; where it has no choice, that is not looked at.
Problem stay_fresh(const Problem&, const std::vector<bool>& away);

// The problem with every choice made. What stays is an input of the ops that change it, not an output, but for what is fresh.
Problem resolve_homes(const Problem&, const std::vector<bool>& away);

// An op's use of a value that lives at home.
struct HomeUse {
  int32_t value;
  bool reads, changes;
};
// Of each op, each value once. Of a resolved problem.
std::vector<std::vector<HomeUse>> home_uses(const Problem& resolved);

// The same values, ops and links, but for values that live at home: no op uses them, they have no bytes, and each
// op's workspace has room for those it uses. Tiers have room for what does not live there.
Problem without_homes(const Problem& resolved);

// What the lower bound has to know about values that may live at home.
HomeReads home_reads(const Problem&);

}  // namespace cairn::plan
