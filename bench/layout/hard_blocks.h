// Blocks that are hard to lay out: many that live long and overlap, of mixed sizes. Deterministic.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/plan/layout/layout.h"

namespace cairn::bench {

struct HardKind {
  const char* name;
  bool perfect;  // a packing as low as the most bytes alive exists by construction
  std::vector<plan::Block> (*make)(int count, uint32_t seed);  // about `count` blocks, bytes multiples of 64
};

// cut       a full rectangle cut in two again and again, across time or across bytes
// pinwheel  the same with rectangles cut into five around a middle, which no straight cut separates
// long      a rectangle cut mostly across bytes: long lives, many at once
// lifetimes random lifetimes of any length, sizes of four octaves
// tiles     a rectangle cut mostly across times: large blocks, brief
// skips     nested lifetimes with gradients on the way back and brief ones everywhere, out of step
std::span<const HardKind> hard_kinds();

}  // namespace cairn::bench
