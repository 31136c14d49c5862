// How long the links are busy at least with values that live in their tier.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/index.h"

namespace cairn::plan {

// What copies take that keep a link's directions busy for so long each alone. Side by side each has a share of its rate: with
// more than half, they are best run so until the shorter one is done.
double seconds_of_both(double out, double in, double both_ways_factor);

// Of a resolved problem: seconds in which some link is never idle in any plan. What is read comes in and what is changed goes
// out, at least once; and what forward uses and backward reads comes in twice, but for what the device can hold where backward
// begins. budget_bytes: of the device; 0: no limit. may_stay: per value that the problem has in its tier, whether the device
// may keep it for the whole step instead, if it is within the budget; empty: none.
double least_link_seconds(const Problem& resolved, int64_t budget_bytes, const std::vector<bool>& may_stay);

// What the copies of values that live in their tier leave of the links' rates to values that go out in forward and come in after
// it; at least a share, as it may be worth a longer step to have their room.
std::vector<Link> links_beside_homes(const Problem& resolved, const Index&, std::vector<Link>);

}  // namespace cairn::plan
