// Which ops may run on tiles of rows together.
//
// A group is a run of forward ops whose rows do not depend on each other, such as norm, linear, activation, linear,
// and all backward ops of these. What only they use is interior: of it there need to be the rows of one tile. The
// backward group computes the interior of its tile again from what is outside.
//
// A run is cut where one value alone passes that is no wider than what passes at its ends: in a transformer, where
// all there is is the residual stream. Groups whose widest op has fewer bytes, with its workspace, than what they
// read and make are left alone: tiles of them free nothing.
#pragma once
#include <optional>
#include <vector>

#include "runtime/compile/stages.h"

namespace cairn::engine {

struct TileGroup {
  std::vector<int32_t> forward, backward;  // ops of the problem, in order
  std::vector<int32_t> again;              // those of `forward` that the backward group runs before its own
  int64_t rows;                            // of all tiles together
  int64_t unit;  // tiles have a multiple of so many, the last one has at least as many
};

// Where each op of the problem is one joint op.
std::vector<TileGroup> tile_groups(const Lowered& plan);

// How an op takes an operand: by rows, or in one piece.
struct TileRows {
  // Shape of one row; nothing: the first axes are not these rows.
  static std::optional<Shape> row_of(const TensorDesc& desc, int64_t rows);
};

// What parameters alone make: it has no rows.
std::vector<bool> values_without_rows(const Lowered& plan);  // by joint value

}  // namespace cairn::engine
