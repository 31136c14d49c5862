// What a plan's bytes are for, tier by tier.
#pragma once
#include "runtime/compile/stages.h"

namespace cairn::engine {

// Bytes of a tier by category at its peak; they add up to tier_peak_bytes(). Residents of a lower tier count as
// what they are, the ends of their last pages as optimizer state; offloaded activations count with the gaps of
// their layout.
CompiledPlan::Memory tier_memory(const CompiledPlan&, Tier);

// Bytes of the optimizer state and master weights in a tier that are no values of the problem.
int64_t optimizer_bytes(const CompiledPlan&, Tier);

// The end of the bytes of a tier that a run uses.
int64_t tier_peak_bytes(const CompiledPlan&, Tier);

// The op of the micro-batch that runs at the tier's peak, or the next one to run; "": only residents are there.
const char* peak_at(const CompiledPlan&, Tier);

}  // namespace cairn::engine
