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

// A block with bytes. Its times are sections: stretches of steps between which something begins or ends. Its bytes
// are a multiple of the alignment.
struct Piece {
  int32_t begin = 0, end = 0;
  int64_t bytes = 0;
};

// Pieces in order of (begin, longest first), and the same by end; row s of either lists what begins (ends) at
// section s. Indices into `all`.
struct Pieces {
  Pieces(std::span<const Block>, int64_t alignment);

  std::vector<Piece> all;
  std::vector<int32_t> block;  // per piece: the block it was made from
  int32_t sections = 0;
  std::vector<int32_t> begin_row,
      end_row;  // sections + 2 each; pieces beginning at s are begin_row[s]..[s+1]
  std::vector<int32_t> by_end;
  std::vector<int64_t> alive;  // bytes per section
  int64_t most = 0;            // the largest of `alive`: no packing is lower
  int64_t alignment = 1;

  // Only some sections matter: those whose pieces are not all alive in a neighbour as well. Something begins there,
  // and something ends right after. Returns, per section and one more, how many of those come before it.
  std::vector<int32_t> full_sections() const;
  int32_t size() const { return static_cast<int32_t>(all.size()); }
};

struct Packing {
  std::vector<int64_t> offsets;  // one per piece
  int64_t height = 0;
};

// Stacks the pieces alive at a peak. Then fits those before and after it into the gaps in the order of time,
// outwards. Tries several peaks and stack orders until one reaches `target`, and returns the lowest. O(n log n) for
// few gaps.
Packing sweep(const Pieces&, int64_t target);

// Stacks the pieces with long lifetimes, longest first, and fits the others above. Tries up to `max_tries` ways until
// one reaches `target`. Replaces `packing` by a lower one. O(n log n), plus the neighbours of short-lived pieces.
void stack(const Pieces&, int64_t target, int max_tries, Packing& packing);

// How many pieces are alive when the last piece begins and were alive before.
int32_t living_to_the_end(const Pieces&);

// Stacks these pieces from below, in the order in which they begin, and the others from `target` downwards, longest
// first. Where the former grow while the latter shrink, as gradients and activations do, no holes are left. Pieces
// that find no place are ejected. True (and `packing` replaced) if all fits. work: as of eject().
bool stack_both_ways(const Pieces&, int64_t target, int64_t& work, Packing& packing);

// Puts each piece that ends above `target`, or has no place yet (a negative offset), below it. Pieces in its way are
// ejected and placed again later. work: visits of neighbours, counted down. True (and `packing` replaced) if all
// fits.
bool eject(const Pieces&, int64_t target, int64_t& work, Packing& packing);

// Branch and bound for a packing no higher than `target`. Work is in visits of pieces in sections and is
// counted down. True (and `packing` replaced) if one was found.
bool search(const Pieces&, int64_t target, int64_t& work, Packing& packing);

// Exact search from below, for up to kMostSearched pieces that live long and overlap. work: visits of sections and
// pieces, counted down. True (and `packing` replaced) if a packing no higher than `target` was found. False with work
// left: there is none, or there are too many pieces.
bool fill(const Pieces&, int64_t target, int64_t& work, Packing& packing);

}  // namespace cairn::plan
