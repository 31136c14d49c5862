// Branch and bound in the manner of MiniMalloc (Moffitt, ASPLOS 2023). Pieces are placed in order of offset, each as
// low as the placed ones allow; so every packing in which no piece can be lowered is met once. A node is cut if in
// some section the lowest offset left plus the bytes left exceed the target. It is cut as well if a piece would leave
// room for another one below it. Parts that share no time are solved separately. The search works on a window of time
// around a piece that ends above the target. Pieces that reach beyond the window keep their offsets.
#include <algorithm>
#include <functional>
#include <numeric>

#include "runtime/plan/layout/layout_parts.h"

namespace cairn::plan {
namespace {

constexpr int32_t kWindows[] = {24, 96, 512};  // grown until so many pieces are free to move
constexpr int32_t kMaxPieces = 512;            // with more free pieces, the search gives up
constexpr int kOrders = 3;

struct Item {
  int32_t begin, end;  // sections, clipped to the window and counted from it
  int64_t bytes;
  int64_t fixed;  // offset of a piece that is not free to move, or -1
  int32_t piece;
};

class OffsetSearch {
 public:
  OffsetSearch(std::vector<Item> items, int32_t sections, int64_t target)
      : items_(std::move(items)), sections_(sections), target_(target) {}

  // 1: each_offset() gives a packing; 0: there is none; -1: out of work.
  int run(int order, int64_t& work) {
    sort(order);
    const size_t n = items_.size();
    lowest_.assign(n, 0);
    placed_.assign(n, 0);
    beside_.assign(n, {});
    for (size_t a = 0; a < n; ++a)
      for (size_t b = 0; b < n; ++b)
        if (a != b && items_[a].begin < items_[b].end && items_[b].begin < items_[a].end)
          beside_[a].push_back(static_cast<int32_t>(b));
    for (size_t a = 0; a < n; ++a) lowest_[a] = above_fixed(static_cast<int32_t>(a), 0);
    work_ = &work;
    std::vector<int32_t> open(n);
    std::iota(open.begin(), open.end(), 0);
    const bool found = solve(open, 0, -1);
    return found ? 1 : work > 0 ? 0 : -1;
  }

  template <typename Visit>
  void each_offset(Visit visit) const {
    for (size_t a = 0; a < items_.size(); ++a) visit(items_[a].piece, items_[a].fixed >= 0, lowest_[a]);
  }

 private:
  // Hard pieces first: by lifetime, by area, or by how full memory is while they live.
  void sort(int order) {
    std::vector<int64_t> sum(sections_, 0);
    for (const Item& i : items_)
      for (int32_t s = i.begin; s < i.end; ++s) sum[s] += i.bytes;
    const auto key = [&](const Item& i) {
      const double length = i.end - i.begin, area = length * static_cast<double>(i.bytes);
      if (order == 0)
        return static_cast<double>(*std::max_element(sum.begin() + i.begin, sum.begin() + i.end));
      return order == 1 ? area : length;
    };
    std::vector<std::pair<double, Item>> keyed;
    for (const Item& i : items_) keyed.emplace_back(key(i), i);
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first > b.first;
      const double x = static_cast<double>(a.second.bytes) * (a.second.end - a.second.begin);
      const double y = static_cast<double>(b.second.bytes) * (b.second.end - b.second.begin);
      return x != y ? x > y : a.second.piece < b.second.piece;
    });
    for (size_t i = 0; i < items_.size(); ++i) items_[i] = keyed[i].second;
  }

  // Lowest offset from `from` on at which item a hits no fixed item that is still to come.
  int64_t above_fixed(int32_t a, int64_t from) const {
    if (items_[a].fixed >= 0) return std::max(from, items_[a].fixed);
    for (bool moved = true; moved;) {
      moved = false;
      for (int32_t b : beside_[a]) {
        const Item& f = items_[b];
        if (f.fixed < 0 || placed_[b] || from >= f.fixed + f.bytes || from + items_[a].bytes <= f.fixed)
          continue;
        from = f.fixed + f.bytes;
        moved = true;
      }
    }
    return from;
  }

  // True if in some section the open items have more bytes than fit above their lowest offset.
  bool overfull(const std::vector<int32_t>& open, int64_t floor) {
    int32_t low = sections_, high = 0;
    for (int32_t a : open) {
      if (std::max(lowest_[a], floor) + items_[a].bytes > target_) return true;
      if (items_[a].fixed >= 0 && std::max(lowest_[a], floor) > items_[a].fixed) return true;
      low = std::min(low, items_[a].begin);
      high = std::max(high, items_[a].end);
    }
    *work_ -= 2 * (high - low);
    left_.assign(high - low, 0);
    least_.assign(high - low, target_);
    for (int32_t a : open) {
      *work_ -= 8 + items_[a].end - items_[a].begin;
      const int64_t offset = std::max(lowest_[a], floor), bytes = items_[a].bytes;
      for (int32_t s = items_[a].begin - low; s < items_[a].end - low; ++s) {
        left_[s] += bytes;
        least_[s] = std::min(least_[s], offset);
      }
    }
    for (int32_t s = 0; s < high - low; ++s)
      if (least_[s] + left_[s] > target_) return true;
    return false;
  }

  // Splits the open items (in static order) into groups that share no section.
  std::vector<std::vector<int32_t>> fall_apart(const std::vector<int32_t>& open) {
    component_.assign(static_cast<size_t>(sections_) + 1, 0);
    for (int32_t a : open) {  // counts items alive across each boundary, as differences
      ++component_[items_[a].begin + 1];
      --component_[items_[a].end];
    }
    int32_t crossing = 0, number = 0;
    for (int32_t s = 0; s < sections_; ++s) {
      crossing += component_[s];
      if (crossing == 0) ++number;
      component_[s] = number;
    }
    std::vector<std::vector<int32_t>> parts(static_cast<size_t>(number) + 1);
    for (int32_t a : open) parts[component_[items_[a].begin]].push_back(a);
    std::erase_if(parts, [](const auto& part) { return part.empty(); });
    return parts;
  }

  bool solve(const std::vector<int32_t>& open, int64_t floor, int32_t last) {
    if (open.empty()) return true;
    if (overfull(open, floor)) return false;
    const auto parts = fall_apart(open);
    std::vector<int64_t> before;
    if (parts.size() > 1)
      for (int32_t a : open) before.push_back(lowest_[a]);
    for (const auto& part : parts)
      if (!branch(part, floor, last)) {
        if (parts.size() > 1)  // undoes the placements of parts that were solved before
          for (size_t k = 0; k < open.size(); ++k) {
            lowest_[open[k]] = before[k];
            placed_[open[k]] = 0;
          }
        return false;
      }
    return true;
  }

  bool branch(const std::vector<int32_t>& open, int64_t floor, int32_t last) {
    int64_t lowest_top = target_ + 1;
    for (int32_t a : open) lowest_top = std::min(lowest_top, std::max(lowest_[a], floor) + items_[a].bytes);
    std::vector<int32_t> candidates, rest;
    std::vector<std::pair<int32_t, int64_t>> trail;
    for (int32_t a : open)
      if (lowest_[a] >= floor && lowest_[a] < lowest_top && (lowest_[a] > floor || a > last))
        candidates.push_back(a);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](int32_t a, int32_t b) { return lowest_[a] < lowest_[b]; });
    for (int32_t a : candidates) {
      const int64_t offset = lowest_[a];
      if (*work_ <= 0) return false;
      rest.clear();
      for (int32_t b : open)
        if (b != a) rest.push_back(b);
      placed_[a] = 1;
      trail.clear();
      bool possible = true;
      *work_ -= static_cast<int64_t>(beside_[a].size() + open.size());
      for (int32_t b : beside_[a]) {
        if (placed_[b]) continue;
        const int64_t above = above_fixed(b, std::max(lowest_[b], offset + items_[a].bytes));
        if (above == lowest_[b]) continue;
        trail.emplace_back(b, lowest_[b]);
        lowest_[b] = above;
        possible = possible && above + items_[b].bytes <= target_;
      }
      if (possible && solve(rest, offset, a)) return true;
      for (const auto& [b, before] : trail) lowest_[b] = before;
      placed_[a] = 0;
      if (*work_ <= 0) return false;
    }
    return false;
  }

  std::vector<Item> items_;
  int32_t sections_;
  int64_t target_;
  std::vector<int64_t> lowest_;  // per item: its offset once placed, before that the lowest possible
  std::vector<uint8_t> placed_;
  std::vector<std::vector<int32_t>> beside_;
  std::vector<int64_t> left_, least_;
  std::vector<int32_t> component_;
  int64_t* work_ = nullptr;
};

// A stretch of sections around piece `i` in which every piece that ends above the target is free to move.
std::pair<int32_t, int32_t> window_around(const Pieces& p, const Packing& packing, int64_t target, int32_t i,
                                          int32_t wanted) {
  int32_t low = p.all[i].begin, high = p.all[i].end;
  for (;;) {
    for (bool grown = true; grown;) {
      grown = false;
      for (int32_t k = 0; k < p.begin_row[high]; ++k) {
        if (packing.offsets[k] + p.all[k].bytes <= target || p.all[k].end <= low) continue;
        grown = grown || p.all[k].begin < low || p.all[k].end > high;
        low = std::min(low, p.all[k].begin);
        high = std::max(high, p.all[k].end);
      }
    }
    int32_t free = 0;
    for (int32_t k = p.begin_row[low]; k < p.begin_row[high]; ++k) free += p.all[k].end <= high;
    if (free >= wanted || (low == 0 && high == p.sections)) return {low, high};
    const int32_t more = (high - low) / 4 + 1;
    low = std::max(0, low - more);
    high = std::min(p.sections, high + more);
  }
}

// Items that live through the full window and touch in address are merged into one obstacle.
void merge_obstacles(std::vector<Item>& items, int32_t sections) {
  const auto through = std::stable_partition(items.begin(), items.end(), [&](const Item& i) {
    return i.fixed < 0 || i.begin > 0 || i.end < sections;
  });
  std::sort(through, items.end(), [](const Item& a, const Item& b) { return a.fixed < b.fixed; });
  auto last = through;
  for (auto i = through; i != items.end(); ++i) {
    if (i != through && last->fixed + last->bytes == i->fixed)
      last->bytes += i->bytes;
    else if (i != through)
      *++last = *i;
  }
  if (through != items.end()) items.erase(last + 1, items.end());
}

bool settle_window(const Pieces& p, int64_t target, int32_t low, int32_t high, int64_t& work,
                   Packing& packing) {
  std::vector<Item> items;
  int32_t free = 0;
  for (int32_t k = 0; k < p.begin_row[high]; ++k) {
    const Piece& x = p.all[k];
    if (x.end <= low) continue;
    const bool inside = low <= x.begin && x.end <= high;
    free += inside;
    items.push_back({std::max(x.begin, low) - low, std::min(x.end, high) - low, x.bytes,
                     inside ? -1 : packing.offsets[k], k});
  }
  merge_obstacles(items, high - low);
  if (free > kMaxPieces || items.size() > 2 * kMaxPieces) return false;
  OffsetSearch search(std::move(items), high - low, target);
  for (const int64_t share : {24, 6, 1})  // a short try of each order before a long try of any
    for (int order = 0; order < kOrders; ++order) {
      const int64_t given = work / (share == 1 ? kOrders - order : share);
      int64_t left = given;
      const int found = search.run(order, left);
      work -= given - left;
      if (found == 0) return false;
      if (found < 0) continue;
      search.each_offset([&](int32_t piece, bool fixed, int64_t offset) {
        if (!fixed) packing.offsets[piece] = offset;
      });
      return true;
    }
  return false;
}

// Small windows first: whether they suffice is soon found.
bool settle(const Pieces& p, int64_t target, int32_t piece, int64_t& work, Packing& packing) {
  std::pair<int32_t, int32_t> before{-1, -1};
  for (const int32_t& wanted : kWindows) {
    const auto window = window_around(p, packing, target, piece, wanted);
    if (window == before) continue;
    before = window;
    const bool last = &wanted == std::end(kWindows) - 1 || window == std::pair{0, p.sections};
    const int64_t given = last ? work : work / 4;
    int64_t left = given;
    const bool found = settle_window(p, target, window.first, window.second, left, packing);
    work -= given - left;
    if (found) return true;
    if (last) return false;
  }
  return false;
}

}  // namespace

bool search(const Pieces& pieces, int64_t target, int64_t& work, Packing& packing) {
  Packing tried = packing;
  for (;;) {
    int32_t highest = -1;
    tried.height = 0;
    for (int32_t i = 0; i < pieces.size(); ++i)
      if (const int64_t top = tried.offsets[i] + pieces.all[i].bytes; top > tried.height) {
        tried.height = top;
        highest = i;
      }
    if (tried.height <= target) break;
    if (!settle(pieces, target, highest, work, tried)) return false;
  }
  packing = std::move(tried);
  return true;
}

}  // namespace cairn::plan
