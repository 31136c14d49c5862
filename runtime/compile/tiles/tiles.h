// Rows in tiles, as a free choice of the planner: a group of ops (groups.h) becomes one op of the problem, whose
// joint ops are launched for one tile of rows after the other. Operands are ranges of rows of the same values; what
// is interior to the group lies in the op's workspace, for one tile. The bits are the same: kernels say how many
// rows a tile needs for that (Registry::tile_rows), and a sum over rows continues where the tile before left it.
#pragma once
#include <optional>

#include "runtime/compile/stages.h"

namespace cairn::engine {

// The problem with groups in at most so many tiles; nothing: there is no group, or none has rows enough for two.
// `plan` has one joint op per op of the problem (lower.h); ops in place may follow.
std::optional<Lowered> with_tiles(Lowered plan, device::Device& device, const PlanOptions& options,
                                  int64_t count);

// The most tiles of any op; 1: nothing goes in tiles.
int64_t most_tiles(const Lowered& plan);

}  // namespace cairn::engine
