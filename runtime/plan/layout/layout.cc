#include "runtime/plan/layout/layout.h"

#include <algorithm>
#include <limits>

#include "runtime/base/checked.h"
#include "runtime/plan/layout/layout_parts.h"

namespace cairn::plan {
namespace {

constexpr int64_t kNoWish = std::numeric_limits<int64_t>::max();

// Limits of work per stage, counted so that results do not depend on the machine: visits of neighbours
// (repair, about 15 ns each), of pieces in sections (search, about 1 ns each) and of sections (fill, about 2 ns each).
struct LayoutEffort {
  int64_t repair = 0;  // visits of neighbours by eject(), per target
  int64_t search = 0;
  int64_t fill = 0;
};
LayoutEffort cheap(int64_t n) {
  return {std::min<int64_t>(n * n / 6, 100'000) + std::min<int64_t>(20 * n, 2'000'000), 0, 0};
}
LayoutEffort hard(int64_t n) {
  return {std::min<int64_t>(20'000 + 2'000 * n, 4'000'000), std::min<int64_t>(100'000 * n, 50'000'000),
          50'000'000};
}

// Tries the bound first. Then tries halfway between what failed and what is reached, down to a 4096th of the bound.
void improve(const Pieces& pieces, int64_t repair, Packing& packing) {
  constexpr int kTargets = 6;
  int64_t failed = pieces.most - pieces.alignment, target = pieces.most;
  for (int k = 0; k < kTargets && packing.height - failed > pieces.most / 4096 && target > failed; ++k) {
    int64_t work = repair;
    if (!eject(pieces, target, work, packing)) failed = target;
    if (packing.height <= pieces.most) return;
    target = failed + (packing.height - failed) / 2 / pieces.alignment * pieces.alignment;
  }
}

// With a capacity, the same stages run in the same order as without, so that the result is never higher. What is
// tried for the capacity alone counts only if it reaches it.
Packing pack(const Pieces& pieces, int64_t capacity, int64_t effort) {
  constexpr int32_t kSmall = 2000;  // pieces: repair is quicker than other stack orders
  // So many pieces that live to the end are the gradients of a model. If stacking both ways finds no layout for them,
  // repair and search seldom do.
  constexpr int32_t kGrowing = 16;
  constexpr int64_t kLess = 8;
  const bool wished = capacity > 0 && capacity < kNoWish;
  const int64_t target = wished ? std::max(pieces.most, capacity) : pieces.most;
  Packing packing = sweep(pieces, target);
  if (packing.height <= target) return packing;
  const LayoutEffort little = cheap(pieces.size()), much = hard(pieces.size());
  int64_t work = little.repair;
  const bool grows = living_to_the_end(pieces) >= kGrowing;
  if (grows && stack_both_ways(pieces, target, work, packing)) return packing;
  work = little.repair;
  if (target > pieces.most && eject(pieces, target, work, packing)) return packing;
  if (effort == kNoEffort && wished) {
    stack(pieces, target, 1, packing);
    return packing;
  }
  work = little.repair;
  if (pieces.size() <= kSmall && eject(pieces, pieces.most, work, packing)) return packing;
  stack(pieces, target, 1, packing);
  if (packing.height - pieces.most > pieces.most / 4096 && pieces.size() > 200)
    stack(pieces, target, 6, packing);
  if (packing.height <= target) return packing;
  improve(pieces, little.repair, packing);
  if (!wished || packing.height <= target || capacity < pieces.most) return packing;
  // What the first two stages find without further effort is final. The exact search is only for what they do not
  // find.
  const auto repair_and_search = [&](int64_t times) {
    work = much.repair * times / (grows ? kLess : 1);
    if (eject(pieces, target, work, packing)) return true;
    work = much.search * times / (grows ? kLess : 1);
    return search(pieces, target, work, packing);
  };
  if (repair_and_search(1) || effort == 0 || pieces.size() > kMostSearched) return packing;
  work = much.fill * effort;
  if (!fill(pieces, target, work, packing)) repair_and_search((effort + 1) / 2);
  return packing;
}

}  // namespace

Layout lay_out(std::span<const Block> blocks, int64_t alignment) {
  return lay_out(blocks, alignment, kNoWish);
}

Layout lay_out(std::span<const Block> blocks, int64_t alignment, int64_t capacity, int64_t effort) {
  require(kNoEffort <= effort && effort <= 1000, Code::kInvalidArgument, "an effort of ", effort,
          "; expected -1 to 1000");
  const Pieces pieces(blocks, alignment);
  Layout layout{std::vector<int64_t>(blocks.size(), 0), 0};
  if (pieces.size() > 0) {
    const Packing packing = pack(pieces, capacity, effort);
    for (int32_t i = 0; i < pieces.size(); ++i) layout.offsets[pieces.block[i]] = packing.offsets[i];
  }
  for (size_t b = 0; b < blocks.size(); ++b)
    layout.height = std::max(layout.height, layout.offsets[b] + blocks[b].bytes);
  return layout;
}

int64_t max_alive(std::span<const Block> blocks) { return Pieces(blocks, 1).most; }

int64_t natural_alignment(const Problem& p) {
  const bool whole = std::all_of(p.values.begin(), p.values.end(),
                                 [](const Value& v) { return v.bytes % kAlignment == 0; }) &&
                     std::all_of(p.ops.begin(), p.ops.end(),
                                 [](const Op& op) { return op.workspace_bytes % kAlignment == 0; });
  return whole ? kAlignment : 1;
}

}  // namespace cairn::plan
