// How long copies of tier-resident values keep the links busy, at least.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/index.h"

namespace cairn::plan {

// The seconds of copies in both directions of a link, each of which takes so long alone. While both run, each has a
// share of its rate. If that is more than half, it is best to run both until the shorter one is done.
double seconds_of_both(double out, double in, double both_ways_factor);

// Of a resolved problem: seconds in which some link is never idle in any plan. A value that is read comes in, and one
// that is changed goes out, at least once. A value that forward uses and backward reads comes in twice, except for
// the bytes that the device can hold where backward begins. budget_bytes: of the device; 0: no limit. may_stay: per
// value in its tier, whether the device may keep it for the full step instead, if it is within the budget; empty:
// none.
double least_link_seconds(const Problem& resolved, int64_t budget_bytes, const std::vector<bool>& may_stay);

// The links at the rates that copies of tier-resident values leave over for values that are offloaded in forward and
// fetched afterwards. It is at least a share of the rate: a longer step may be worth the memory.
std::vector<Link> links_beside_homes(const Problem& resolved, const Index&, std::vector<Link>);

}  // namespace cairn::plan
