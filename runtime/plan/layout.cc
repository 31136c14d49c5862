#include "runtime/plan/layout.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/checked.h"

namespace cairn::plan {
namespace {

// Range maximum with range assignment, over steps. Assigned heights only grow over what was there.
class Skyline {
 public:
  explicit Skyline(int32_t steps) {
    while (size_ < steps) size_ *= 2;
    max_.assign(2 * size_, 0);
    set_.assign(2 * size_, -1);
  }
  int64_t highest(int32_t begin, int32_t end) { return query(1, 0, size_, begin, end); }
  void raise(int32_t begin, int32_t end, int64_t height) { assign(1, 0, size_, begin, end, height); }

 private:
  void push(int32_t node) {
    if (set_[node] < 0) return;
    for (int32_t child : {2 * node, 2 * node + 1}) max_[child] = set_[child] = set_[node];
    set_[node] = -1;
  }
  int64_t query(int32_t node, int32_t low, int32_t high, int32_t begin, int32_t end) {
    if (end <= low || high <= begin) return 0;
    if (begin <= low && high <= end) return max_[node];
    push(node);
    const int32_t middle = (low + high) / 2;
    return std::max(query(2 * node, low, middle, begin, end), query(2 * node + 1, middle, high, begin, end));
  }
  void assign(int32_t node, int32_t low, int32_t high, int32_t begin, int32_t end, int64_t height) {
    if (end <= low || high <= begin) return;
    if (begin <= low && high <= end) {
      max_[node] = set_[node] = height;
      return;
    }
    push(node);
    const int32_t middle = (low + high) / 2;
    assign(2 * node, low, middle, begin, end, height);
    assign(2 * node + 1, middle, high, begin, end, height);
    max_[node] = std::max(max_[2 * node], max_[2 * node + 1]);
  }

  int32_t size_ = 1;
  std::vector<int64_t> max_, set_;
};

// Short blocks by the stretch of steps they touch, so that the neighbours in time of one are found without a
// scan.
class Shelves {
 public:
  Shelves(std::span<const Block> blocks, int32_t steps, int32_t width)
      : blocks_(blocks), width_(width), shelf_(steps / width + 1), seen_(blocks.size(), -1) {}

  // Offset of the smallest gap at or above `floor` that the block fits in, among the short blocks placed so
  // far.
  int64_t best_fit(int32_t b, int64_t floor, const std::vector<int64_t>& offsets, int64_t alignment) {
    const Block& block = blocks_[b];
    near_.clear();
    for (int32_t s = block.begin / width_; s <= (block.end - 1) / width_; ++s)
      for (int32_t other : shelf_[s]) {
        const Block& o = blocks_[other];
        if (seen_[other] == b || o.end <= block.begin || block.end <= o.begin) continue;
        seen_[other] = b;
        if (offsets[other] + o.bytes > floor) near_.push_back({offsets[other], offsets[other] + o.bytes});
      }
    std::sort(near_.begin(), near_.end());
    int64_t low = floor, best = -1, best_gap = 0;
    for (const auto& [start, end] : near_) {
      if (start - low >= block.bytes && (best < 0 || start - low < best_gap)) {
        best = low;
        best_gap = start - low;
      }
      low = std::max(low, align_up(end, alignment));
    }
    return best < 0 ? low : best;
  }

  void add(int32_t b) {
    for (int32_t s = blocks_[b].begin / width_; s <= (blocks_[b].end - 1) / width_; ++s)
      shelf_[s].push_back(b);
  }

 private:
  std::span<const Block> blocks_;
  int32_t width_;
  std::vector<std::vector<int32_t>> shelf_;
  std::vector<int32_t> seen_;
  std::vector<std::pair<int64_t, int64_t>> near_;
};

struct Recipe {
  int32_t longest;  // blocks that live longer are stacked by their lifetime first; the others fill gaps above
  bool (*before)(const Block&, const Block&);
};

bool by_size(const Block& a, const Block& b) { return a.bytes > b.bytes; }
bool by_area(const Block& a, const Block& b) {
  return static_cast<double>(a.bytes) * (a.end - a.begin) > static_cast<double>(b.bytes) * (b.end - b.begin);
}
bool by_length(const Block& a, const Block& b) { return a.end - a.begin > b.end - b.begin; }
bool by_begin(const Block& a, const Block& b) { return a.begin < b.begin; }
bool by_end(const Block& a, const Block& b) { return a.end > b.end; }

// Saved values span the turnaround with nested lifetimes: stacked longest first they leave no holes. What
// lives only briefly is then fitted above the stack by size.
Layout place(std::span<const Block> blocks, int32_t steps, int64_t alignment, const Recipe& recipe) {
  Layout layout{std::vector<int64_t>(blocks.size(), 0), 0};
  std::vector<int32_t> lengthy, brief;
  for (int32_t b = 0; b < static_cast<int32_t>(blocks.size()); ++b)
    if (blocks[b].bytes > 0)
      (blocks[b].end - blocks[b].begin > recipe.longest ? lengthy : brief).push_back(b);
  Skyline skyline(steps);
  std::stable_sort(lengthy.begin(), lengthy.end(),
                   [&](int32_t a, int32_t b) { return by_length(blocks[a], blocks[b]); });
  for (int32_t b : lengthy) {
    layout.offsets[b] = align_up(skyline.highest(blocks[b].begin, blocks[b].end), alignment);
    skyline.raise(blocks[b].begin, blocks[b].end, layout.offsets[b] + blocks[b].bytes);
  }
  std::stable_sort(brief.begin(), brief.end(),
                   [&](int32_t a, int32_t b) { return recipe.before(blocks[a], blocks[b]); });
  Shelves shelves(blocks, steps, std::max(1, std::min(recipe.longest, steps)));
  for (int32_t b : brief) {
    const int64_t floor = align_up(skyline.highest(blocks[b].begin, blocks[b].end), alignment);
    layout.offsets[b] = shelves.best_fit(b, floor, layout.offsets, alignment);
    shelves.add(b);
  }
  for (size_t b = 0; b < blocks.size(); ++b)
    if (blocks[b].bytes > 0) layout.height = std::max(layout.height, layout.offsets[b] + blocks[b].bytes);
  return layout;
}

int64_t most_alive(std::span<const Block> blocks, int32_t steps) {
  std::vector<int64_t> change(steps + 1, 0);
  for (const Block& b : blocks) {
    change[b.begin] += b.bytes;
    change[b.end] -= b.bytes;
  }
  int64_t alive = 0, most = 0;
  for (int64_t c : change) most = std::max(most, alive += c);
  return most;
}

}  // namespace

Layout lay_out(std::span<const Block> blocks, int64_t alignment) {
  int32_t steps = 1;
  for (const Block& b : blocks) steps = std::max(steps, b.end);
  const int64_t ideal = most_alive(blocks, steps);
  // Best fit over everything compares each block with all that live beside it: only where there are few.
  constexpr int32_t kFew = 3000;
  std::vector<Recipe> recipes = {
      {64, by_size}, {64, by_length}, {24, by_size}, {256, by_size}, {64, by_area}};
  if (blocks.size() <= kFew)
    for (const auto before : {by_size, by_area, by_length, by_begin, by_end})
      recipes.push_back({std::max(steps, 1), before});
  Layout best;
  for (const Recipe& recipe : recipes) {
    Layout layout = place(blocks, steps, alignment, recipe);
    if (best.offsets.empty() || layout.height < best.height) best = std::move(layout);
    if (best.height <= ideal) break;
  }
  return best;
}

int64_t natural_alignment(const Problem& p) {
  const bool whole = std::all_of(p.values.begin(), p.values.end(),
                                 [](const Value& v) { return v.bytes % kAlignment == 0; }) &&
                     std::all_of(p.ops.begin(), p.ops.end(),
                                 [](const Op& op) { return op.workspace_bytes % kAlignment == 0; });
  return whole ? kAlignment : 1;
}

}  // namespace cairn::plan
