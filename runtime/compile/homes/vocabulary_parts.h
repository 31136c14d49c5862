// Into how many parts a weight goes that lookups and the fused loss alone use, so that it need not be whole on the
// device.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "runtime/compile/program.h"

namespace cairn::engine {

// By parameter: what the first rows of its parts are multiples of, and the least that a part has.
using PartUnits = std::map<std::string, int64_t>;

// Of every weight that may go in parts in all of the graphs (in which it is), and whose parts make the same bits.
PartUnits part_units(std::span<const std::shared_ptr<const graph::JointGraph>> joints,
                     const kernels::Registry& kernels, int threads);

// As many parts as it takes so that no op on one needs more on the device than the largest of the other ops does; of what `lower`
// makes of the options, with the vocabulary in one piece and in parts, which hand things on to one another. What is small enough
// stays so.
graph::PartRows choose_parts(
    const std::function<std::shared_ptr<CompiledPlan>(const graph::JointOptions&)>& lower,
    graph::JointOptions joint, const PartUnits& units);
// So many parts of each. kInvalidArgument names the most that there can be.
graph::PartRows choose_parts(const CompiledPlan& whole, const PartUnits& units, int64_t parts);

}  // namespace cairn::engine
