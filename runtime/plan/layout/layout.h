// Static layout: offsets for blocks with known lifetimes in one arena, as low as can be (dynamic storage
// allocation, NP-hard). Sweeps outwards from a peak, then repairs by ejection, then, for a wanted capacity, a
// branch and bound on what is left, then, given the effort, an exact search from below. Pure, deterministic, limited
// by counts of work, never by a clock.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {

// Takes memory from step `begin` up to, not including, step `end`. 0 <= begin.
struct Block {
  int32_t begin = 0, end = 0;
  int64_t bytes = 0;
};

struct Layout {
  std::vector<int64_t> offsets;  // per block, multiples of the alignment, counted from 0
  int64_t height = 0;            // highest end of any block
};

// As low as can be cheaply. Blocks of no bytes or no steps lie at 0.
Layout lay_out(std::span<const Block>, int64_t alignment);

// Stops as soon as the height is at most `capacity`, and tries much harder while it is above. The result is never
// higher than the layout without a capacity, unless that is already within it. Returns the lowest layout found even
// if it is above the capacity. A capacity of 0 or INT64_MAX means none. The harder search takes up to about 0.1 s.
// For up to kMostSearched blocks with bytes it takes up to `effort` (0 to 1000) times 0.1 s more. kNoEffort is for
// callers who can ask for a smaller plan instead: it takes a few milliseconds at most, and the layout may be higher
// than without a capacity.
inline constexpr int64_t kNoEffort = -1;
Layout lay_out(std::span<const Block>, int64_t alignment, int64_t capacity, int64_t effort = 0);
inline constexpr int32_t kMostSearched = 1024;

// Most bytes alive at once: no layout is lower.
int64_t max_alive(std::span<const Block>);

// kAlignment if every value's and workspace's bytes are multiples of it, else 1.
int64_t natural_alignment(const Problem&);

// Sets all offsets of the plan's steps, value_offsets, home_offsets, arena_bytes, tier_arena_bytes and peak_step.
// Values that may live in a tier and are persistent have to be decided: they are kept on the device. capacity: of the
// device, persistent values included; 0: as low as is cheap to find. effort: as of lay_out().
void assign_offsets(const Problem&, const Index&, Plan&, int64_t capacity = 0, int64_t effort = 0);
}  // namespace cairn::plan
