// Static layout: offsets for blocks with known lifetimes in one arena, as low as can be (dynamic storage
// allocation, NP-hard; here several greedy orders, the lowest kept).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {

// Takes memory from step `begin` up to, not including, step `end`.
struct Block {
  int32_t begin = 0, end = 0;
  int64_t bytes = 0;
};

struct Layout {
  std::vector<int64_t> offsets;  // per block, multiples of the alignment, counted from 0
  int64_t height = 0;            // highest end of any block
};

// Deterministic. Blocks of no bytes lie at 0.
Layout lay_out(std::span<const Block>, int64_t alignment);

// kAlignment if every value's and workspace's bytes are multiples of it, else 1.
int64_t natural_alignment(const Problem&);

// Sets all offsets of the plan's steps, value_offsets, arena_bytes, tier_arena_bytes and peak_step.
void assign_offsets(const Problem&, const Index&, Plan&);

}  // namespace cairn::plan
