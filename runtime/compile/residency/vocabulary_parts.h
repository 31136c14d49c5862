// Splits a weight that only lookups and the fused loss use, or products of experts, so that the device need not hold it in one piece.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "runtime/compile/stages.h"

namespace cairn::engine {

// By parameter, a number of rows: each part begins at a multiple of it and has at least as many.
using PartUnits = std::map<std::string, int64_t>;

// For every weight that may be split in all graphs that have it, and whose parts make the same bits.
PartUnits part_units(std::span<const std::shared_ptr<const graph::JointGraph>> joints,
                     const kernels::Registry& kernels, int threads);

// As many parts as it takes for no op on a part to need more of the device than the largest other op. `lower` says
// what ops need, with the vocabulary in one piece and in parts, which keep other values alive. Weights that are
// small enough are not split.
graph::PartRows choose_parts(
    const std::function<std::shared_ptr<const Lowered>(const graph::JointOptions&)>& lower,
    graph::JointOptions joint, const PartUnits& units);
// The same number of parts for each. kInvalidArgument names the most that there can be.
graph::PartRows choose_parts(const Lowered& whole, const PartUnits& units, int64_t parts);

}  // namespace cairn::engine
