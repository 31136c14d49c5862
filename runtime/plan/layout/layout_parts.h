// What the stages of lay_out() share. Every stage takes the same pieces and improves the same Packing.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "runtime/plan/layout/layout.h"

namespace cairn::plan {

// Above every address of a packing: Pieces refuses blocks that could come as high.
inline constexpr int64_t kTop = std::numeric_limits<int64_t>::max();

// A block that takes room: times are sections (stretches of steps between which something begins or ends),
// bytes a multiple of the alignment.
struct Piece {
  int32_t begin = 0, end = 0;
  int64_t bytes = 0;
};

// Pieces in order of (begin, longest first), and the same by end; row s of either lists what begins (ends) at
// section s. Indices into `all`.
struct Pieces {
  Pieces(std::span<const Block>, int64_t alignment);

  std::vector<Piece> all;
  std::vector<int32_t> block;  // per piece: which block it was
  int32_t sections = 0;
  std::vector<int32_t> begin_row,
      end_row;  // sections + 2 each; pieces beginning at s are begin_row[s]..[s+1]
  std::vector<int32_t> by_end;
  std::vector<int64_t> alive;  // bytes per section
  int64_t most = 0;            // the largest of `alive`: no packing is lower
  int64_t alignment = 1;

  // Only sections whose pieces are not all alive in a neighbour, too, matter: something begins there and something ends right
  // after. Per section, and one more: how many of those lie before it.
  std::vector<int32_t> full_sections() const;
  int32_t size() const { return static_cast<int32_t>(all.size()); }
};

struct Packing {
  std::vector<int64_t> offsets;  // per piece
  int64_t height = 0;
};

// Pieces alive at a peak are stacked, then those before and after it are fitted into the gaps in the order
// of time, outwards. Several peaks and stack orders, until one reaches `target`; the lowest. O(n log n) for
// few gaps.
Packing sweep(const Pieces&, int64_t target);

// Stacks what lives long, longest first, and fits the rest above; up to `max_tries` ways, until one reaches
// `target`. Replaces `packing` by what is lower. O(n log n) and the neighbours of what is brief.
void stack(const Pieces&, int64_t target, int max_tries, Packing& packing);

// How many pieces are alive when the last one comes, and were before.
int32_t living_to_the_end(const Pieces&);

// Stacks those from below, in the order in which they come, and the rest from `target` downwards, longest first: where the former grow
// while the latter fall, as gradients while activations do, no holes are left. What finds no place is ejected. True (and
// `packing` replaced) if all fits. Work as of eject().
bool stack_both_ways(const Pieces&, int64_t target, int64_t& work, Packing& packing);

// Puts what stands out above `target` or has no place yet (a negative offset) below it, throwing out what is in the way, which
// is put back in
// turn. Work is in visits of neighbours and is counted down. True (and `packing` replaced) if all fits.
bool eject(const Pieces&, int64_t target, int64_t& work, Packing& packing);

// Branch and bound for a packing no higher than `target`. Work is in visits of pieces in sections and is
// counted down. True (and `packing` replaced) if one was found.
bool search(const Pieces&, int64_t target, int64_t& work, Packing& packing);

// Exact search from below, for up to kMostSearched pieces that live long and overlap. Work is in visits of sections and
// pieces and is counted down. True (and `packing` replaced) if a packing no higher than `target` was found; false
// with work left: there is none, or there are too many pieces.
bool fill(const Pieces&, int64_t target, int64_t& work, Packing& packing);

}  // namespace cairn::plan
