// What a plan's bytes are for, tier by tier.
#pragma once
#include "runtime/compile/program.h"

namespace cairn::engine {

// Bytes of the tier by category at the tier's peak; they add up to tier_peak_bytes(). Of a lower tier: what lives there
// at all times, and as activations the copies of what the device wants back, with the gaps of their layout. Pages that
// optimizer state ends in count with it.
CompiledPlan::Memory tier_memory(const CompiledPlan&, Tier);

// Of optimizer state and master weights that live there and are no values of the problem.
int64_t optimizer_bytes(const CompiledPlan&, Tier);

// The highest byte that a run of the plan uses of the tier.
int64_t tier_peak_bytes(const CompiledPlan&, Tier);

// The op of the micro-batch that runs at the tier's peak, or is the next to; "": what persists is all there is.
const char* peak_at(const CompiledPlan&, Tier);

}  // namespace cairn::engine
