// Stacks the pieces alive at a peak without holes. Every other piece lies completely before or completely after the
// peak. They are fitted outwards in time as by an allocator that sees only the present: best fit, and freed ranges
// are joined. In a training step all long-lived pieces are alive at the beginning of backward. If these are stacked
// by their ends (the last at the bottom), backward frees memory from the top. The holes then lie in forward, where
// memory is plentiful.
#include <algorithm>
#include <numeric>

#include "runtime/plan/layout/layout_parts.h"

namespace cairn::plan {
namespace {

constexpr int64_t kMaxVisits = 100'000'000;  // of gaps; after so many, no other order is tried

// Free address ranges in order, the last open to the top.
class Gaps {
 public:
  void reset(int64_t stacked) {
    gaps_.clear();
    gaps_.push_back({stacked, kTop});
  }

  // Lowest address of the smallest gap that `bytes` fit in.
  int64_t take(int64_t bytes) {
    visits_ += static_cast<int64_t>(gaps_.size());
    size_t best = gaps_.size() - 1;
    int64_t best_size = kTop;
    for (size_t g = 0; g + 1 < gaps_.size(); ++g) {
      const int64_t size = gaps_[g].end - gaps_[g].begin;
      if (size < bytes || size >= best_size) continue;
      best = g;
      best_size = size;
      if (size == bytes) break;
    }
    const int64_t offset = gaps_[best].begin;
    gaps_[best].begin += bytes;
    if (gaps_[best].begin == gaps_[best].end) gaps_.erase(gaps_.begin() + static_cast<int64_t>(best));
    return offset;
  }

  int64_t visits() const { return visits_; }

  void give(int64_t begin, int64_t end) {
    auto after = std::lower_bound(gaps_.begin(), gaps_.end(), end,
                                  [](const Gap& g, int64_t address) { return g.begin < address; });
    const bool joins_after = after->begin == end;
    const bool joins_before = after != gaps_.begin() && (after - 1)->end == begin;
    if (joins_after && joins_before) {
      (after - 1)->end = after->end;
      gaps_.erase(after);
    } else if (joins_after) {
      after->begin = begin;
    } else if (joins_before) {
      (after - 1)->end = end;
    } else {
      gaps_.insert(after, {begin, end});
    }
  }

 private:
  struct Gap {
    int64_t begin, end;
  };
  std::vector<Gap> gaps_;
  int64_t visits_ = 0;
};

enum class Stack { kByEnd, kByLength, kByBegin, kBySize };

class Sweeper {
 public:
  explicit Sweeper(const Pieces& pieces) : p_(pieces) { packing_.offsets.resize(p_.all.size()); }

  // Gives up (false) once the packing is not lower than `limit`.
  bool run(int32_t pivot, Stack order, int64_t limit) {
    limit_ = limit;
    stack(pivot, order);
    return packing_.height < limit_ && after(pivot) && before(pivot);
  }
  const Packing& packing() const { return packing_; }
  int64_t visits() const { return gaps_.visits(); }

 private:
  void stack(int32_t pivot, Stack order) {
    stacked_.clear();
    for (int32_t i = 0; i < p_.begin_row[pivot + 1]; ++i)
      if (p_.all[i].end > pivot) stacked_.push_back(i);
    const auto key = [&](int32_t i) -> int64_t {
      const Piece& x = p_.all[i];
      return order == Stack::kByEnd      ? -x.end
             : order == Stack::kByLength ? x.begin - x.end
             : order == Stack::kByBegin  ? x.begin
                                         : -x.bytes;
    };
    std::stable_sort(stacked_.begin(), stacked_.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
    int64_t top = 0;
    for (int32_t i : stacked_) {
      packing_.offsets[i] = top;
      top += p_.all[i].bytes;
    }
    packing_.height = stack_height_ = top;
  }

  bool place(int32_t i) {
    const int64_t offset = gaps_.take(p_.all[i].bytes);
    packing_.offsets[i] = offset;
    packing_.height = std::max(packing_.height, offset + p_.all[i].bytes);
    return packing_.height < limit_;
  }
  void release(int32_t i) { gaps_.give(packing_.offsets[i], packing_.offsets[i] + p_.all[i].bytes); }

  bool after(int32_t pivot) {
    gaps_.reset(stack_height_);
    for (int32_t s = pivot + 1; s < p_.sections; ++s) {
      for (int32_t k = p_.end_row[s]; k < p_.end_row[s + 1]; ++k) release(p_.by_end[k]);
      for (int32_t i = p_.begin_row[s]; i < p_.begin_row[s + 1]; ++i)
        if (!place(i)) return false;
    }
    return true;
  }

  bool before(int32_t pivot) {
    gaps_.reset(stack_height_);
    for (int32_t s = pivot; s > 0; --s) {
      for (int32_t i = p_.begin_row[s]; i < p_.begin_row[s + 1]; ++i) release(i);
      for (int32_t k = p_.end_row[s]; k < p_.end_row[s + 1]; ++k)
        if (!place(p_.by_end[k])) return false;
    }
    return true;
  }

  const Pieces& p_;
  Packing packing_;
  Gaps gaps_;
  std::vector<int32_t> stacked_;
  int64_t stack_height_ = 0, limit_ = 0;
};

}  // namespace

Packing sweep(const Pieces& pieces, int64_t target) {
  // The peaks: the first and the last of the fullest sections, and the one with the most pieces alive.
  const auto first = std::max_element(pieces.alive.begin(), pieces.alive.end());
  const auto last = std::max_element(pieces.alive.rbegin(), pieces.alive.rend());
  std::vector<int32_t> pivots = {static_cast<int32_t>(last.base() - pieces.alive.begin()) - 1,
                                 static_cast<int32_t>(first - pieces.alive.begin())};
  if (pivots[0] == pivots[1]) pivots.pop_back();
  Sweeper sweeper(pieces);
  Packing best{{}, kTop};
  for (const Stack order : {Stack::kByEnd, Stack::kByLength, Stack::kByBegin, Stack::kBySize})
    for (const int32_t pivot : pivots) {
      if (sweeper.run(pivot, order, best.height)) best = sweeper.packing();
      if (best.height <= target || sweeper.visits() > kMaxVisits) return best;
    }
  return best;
}

}  // namespace cairn::plan
