// Stacks pieces with long lifetimes, longest first: nested lifetimes leave no holes. Short-lived pieces are then
// fitted above the stack, best fit, in an order of their own. This finds layouts that a sweep misses where many peaks
// are equally high, as in plans for a small budget.
#include <algorithm>
#include <numeric>

#include "runtime/plan/layout/layout_parts.h"

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

// Short-lived pieces by the stretch of steps they touch, so that the neighbours in time of a piece are found without
// a scan.
class Shelves {
 public:
  Shelves(std::span<const Piece> pieces, int32_t steps, int32_t width)
      : pieces_(pieces), width_(width), shelf_(steps / width + 1), seen_(pieces.size(), -1) {}

  // Offset of the smallest gap at or above `floor` that the piece fits in, among the short pieces placed so
  // far.
  int64_t best_fit(int32_t b, int64_t floor, const std::vector<int64_t>& offsets) {
    const Piece& piece = pieces_[b];
    near_.clear();
    for (int32_t s = piece.begin / width_; s <= (piece.end - 1) / width_; ++s)
      for (int32_t other : shelf_[s]) {
        const Piece& o = pieces_[other];
        if (seen_[other] == b || o.end <= piece.begin || piece.end <= o.begin) continue;
        seen_[other] = b;
        if (offsets[other] + o.bytes > floor) near_.push_back({offsets[other], offsets[other] + o.bytes});
      }
    std::sort(near_.begin(), near_.end());
    int64_t low = floor, best = -1, best_gap = 0;
    for (const auto& [start, end] : near_) {
      if (start - low >= piece.bytes && (best < 0 || start - low < best_gap)) {
        best = low;
        best_gap = start - low;
      }
      low = std::max(low, end);
    }
    return best < 0 ? low : best;
  }

  void add(int32_t b) {
    for (int32_t s = pieces_[b].begin / width_; s <= (pieces_[b].end - 1) / width_; ++s)
      shelf_[s].push_back(b);
  }

 private:
  std::span<const Piece> pieces_;
  int32_t width_;
  std::vector<std::vector<int32_t>> shelf_;
  std::vector<int32_t> seen_;
  std::vector<std::pair<int64_t, int64_t>> near_;
};

struct Recipe {
  int32_t longest;  // in sections; pieces with longer lifetimes are stacked
  bool (*before)(const Piece&, const Piece&);
};

bool by_size(const Piece& a, const Piece& b) { return a.bytes > b.bytes; }
bool by_length(const Piece& a, const Piece& b) { return a.end - a.begin > b.end - b.begin; }
bool by_area(const Piece& a, const Piece& b) {
  return static_cast<double>(a.bytes) * (a.end - a.begin) > static_cast<double>(b.bytes) * (b.end - b.begin);
}

Packing place(const Pieces& p, const Recipe& recipe) {
  Packing packing{std::vector<int64_t>(p.all.size(), 0), 0};
  std::vector<int32_t> lengthy, brief;
  for (int32_t i = 0; i < p.size(); ++i)
    (p.all[i].end - p.all[i].begin > recipe.longest ? lengthy : brief).push_back(i);
  Skyline skyline(p.sections);
  std::stable_sort(lengthy.begin(), lengthy.end(),
                   [&](int32_t a, int32_t b) { return by_length(p.all[a], p.all[b]); });
  for (int32_t i : lengthy) {
    const Piece& x = p.all[i];
    packing.offsets[i] = skyline.highest(x.begin, x.end);
    skyline.raise(x.begin, x.end, packing.offsets[i] + x.bytes);
  }
  std::stable_sort(brief.begin(), brief.end(),
                   [&](int32_t a, int32_t b) { return recipe.before(p.all[a], p.all[b]); });
  Shelves shelves(p.all, p.sections, std::min(recipe.longest, p.sections));
  for (int32_t i : brief) {
    packing.offsets[i] = shelves.best_fit(i, skyline.highest(p.all[i].begin, p.all[i].end), packing.offsets);
    shelves.add(i);
  }
  for (int32_t i = 0; i < p.size(); ++i)
    packing.height = std::max(packing.height, packing.offsets[i] + p.all[i].bytes);
  return packing;
}

constexpr int32_t kLengthy = 64;  // sections; pieces with longer lifetimes are stacked

// Lowers every piece as far as the pieces below it allow.
void drop(const Pieces& p, Packing& packing) {
  std::vector<int32_t> order(p.all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return packing.offsets[a] < packing.offsets[b]; });
  Skyline skyline(p.sections);
  packing.height = 0;
  for (const int32_t i : order) {
    const Piece& x = p.all[i];
    packing.offsets[i] = skyline.highest(x.begin, x.end);
    skyline.raise(x.begin, x.end, packing.offsets[i] + x.bytes);
    packing.height = std::max(packing.height, packing.offsets[i] + x.bytes);
  }
}

// Whether the piece is alive when the last piece begins, and was before.
bool lives_to_the_end(const Pieces& p, const Piece& x) {
  const int32_t last = p.all.back().begin;
  return x.begin < last && x.end > last;
}

}  // namespace

int32_t living_to_the_end(const Pieces& p) {
  return static_cast<int32_t>(
      std::count_if(p.all.begin(), p.all.end(), [&](const Piece& x) { return lives_to_the_end(p, x); }));
}

bool stack_both_ways(const Pieces& p, int64_t target, int64_t& work, Packing& packing) {
  const int64_t top = target / p.alignment * p.alignment;
  Packing tried{std::vector<int64_t>(p.all.size(), -1), 0};
  Skyline bottom(p.sections), hanging(p.sections);  // heights from below, and from the top downwards
  std::vector<int32_t> lengthy, brief;
  for (int32_t i = 0; i < p.size(); ++i) {
    const Piece& x = p.all[i];
    if (!lives_to_the_end(p, x)) {
      (x.end - x.begin > kLengthy ? lengthy : brief).push_back(i);
      continue;
    }
    tried.offsets[i] = bottom.highest(x.begin, x.end);
    bottom.raise(x.begin, x.end, tried.offsets[i] + x.bytes);
  }
  std::vector<int64_t> depths(p.all.size());  // per piece: from the top to its upper end
  const auto hang = [&](int32_t i, int64_t depth) {
    const Piece& x = p.all[i];
    depths[i] = depth;
    if (top - depth - x.bytes < bottom.highest(x.begin, x.end)) return false;
    tried.offsets[i] = top - depth - x.bytes;
    return true;
  };
  std::stable_sort(lengthy.begin(), lengthy.end(),
                   [&](int32_t a, int32_t b) { return by_length(p.all[a], p.all[b]); });
  for (const int32_t i : lengthy) {
    const Piece& x = p.all[i];
    const int64_t depth = hanging.highest(x.begin, x.end);
    if (hang(i, depth)) hanging.raise(x.begin, x.end, depth + x.bytes);
  }
  std::stable_sort(brief.begin(), brief.end(),
                   [&](int32_t a, int32_t b) { return by_length(p.all[a], p.all[b]); });
  Shelves shelves(p.all, p.sections, std::min(kLengthy, p.sections));
  for (const int32_t i : brief)
    if (hang(i, shelves.best_fit(i, hanging.highest(p.all[i].begin, p.all[i].end), depths))) shelves.add(i);
  for (int32_t i = 0; i < p.size(); ++i)
    tried.height = std::max(tried.height, tried.offsets[i] < 0 ? kTop : tried.offsets[i] + p.all[i].bytes);
  if (tried.height > target && !eject(p, target, work, tried)) return false;
  drop(p, tried);
  packing = std::move(tried);
  return true;
}

void stack(const Pieces& pieces, int64_t target, int max_tries, Packing& packing) {
  constexpr Recipe kRecipes[] = {{64, by_size},  {64, by_length}, {24, by_size},
                                 {256, by_size}, {64, by_area},   {1 << 30, by_size}};
  // Best fit for all pieces compares each one with all that are alive at the same time, so it is for few pieces only.
  constexpr int32_t kSmall = 3000;
  for (const Recipe& recipe : kRecipes) {
    if (packing.height <= target || max_tries-- <= 0) return;
    if (recipe.longest > pieces.sections && &recipe != kRecipes && pieces.size() > kSmall) continue;
    Packing tried = place(pieces, recipe);
    if (tried.height < packing.height) packing = std::move(tried);
  }
}

}  // namespace cairn::plan
