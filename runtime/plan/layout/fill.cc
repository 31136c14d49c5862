// Exact search that fills memory from below. The pieces placed so far form a floor over time. A valley is a stretch
// of the floor that is lower than its left and right neighbours, the walls. The lowest address at its left edge is
// taken by a piece that begins exactly there, or by none. If by none, the memory up to the next address at which
// something can cover it is wasted. The right edge is the same with pieces that end there.
// The edge with the fewest ways is decided next, so that forced decisions come first. An edge with no way ends the
// branch. Each section may waste only the target less the bytes alive in it (MiniMalloc: Moffitt, ASPLOS 2023, prunes
// by the same sum).
// An edge and its ways depend on its valley and walls only. So each failure names the stretch of sections that it
// comes from. Decisions outside that stretch are undone without a look at their other ways. States without a packing
// are remembered. Several restarts try the ways in other orders, and first the edges where branches often ended.
#include <algorithm>
#include <limits>

#include "runtime/plan/layout/layout_parts.h"

namespace cairn::plan {
namespace {

class Filler {
 public:
  Filler(const Pieces& p, int64_t target, int64_t& work)
      : most_(p.most), alignment_(p.alignment), highest_(target / p.alignment * p.alignment), work_(work) {
    full_ = p.full_sections();
    const std::vector<int32_t>& to = full_;
    for (int32_t i = 0; i < p.size(); ++i)
      items_.push_back({to[p.all[i].begin], to[p.all[i].end], p.all[i].bytes, i});
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      if (a.begin != b.begin) return a.begin < b.begin;
      if (a.end != b.end) return a.end > b.end;
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.piece < b.piece;
    });
    const auto n = static_cast<int32_t>(items_.size());
    sections_ = to.back();
    from_left_.resize(sections_);
    from_right_.resize(static_cast<size_t>(sections_) + 1);
    floor_.assign(sections_, 0);
    left_.assign(sections_, 0);
    top_.assign(sections_, -1);
    stretch_.resize(sections_);
    weight_.assign(sections_, 1);
    offsets_.assign(n, -1);
    rank_.assign(n, 0);
    score_.assign(n, 0);
    for (int32_t i = 0; i < n; ++i) {
      from_left_[items_[i].begin].push_back(i);
      from_right_[items_[i].end].push_back(i);
      for (int32_t s = items_[i].begin; s < items_[i].end; ++s) left_[s] += items_[i].bytes;
      piece_key_.push_back(draw());
    }
    for (int32_t s = 0; s < sections_; ++s) waste_key_.push_back(draw() | 1);
    unplaced_ = n;
  }

  bool run() {
    hopeless_.assign(size_t{1} << kStateBits, {});
    int64_t failed = -1;  // known: no packing is this low
    for (int64_t round = 1; work_ > 0; ++round) {
      const int64_t room = (highest_ - most_) / alignment_;
      target_ = most_ + room * kShares[(round - 1) % std::size(kShares)] / 4 * alignment_;
      if (target_ <= failed) continue;
      const int64_t turn = (round - 1) / static_cast<int64_t>(std::size(kShares)) + 1;
      rank(round, turn);
      narrow_first_ = turn % 8 != 0;
      for (Edge& edge : stretch_) edge.high = -1;
      nodes_ = kNodesPerPiece * (250 + static_cast<int64_t>(items_.size())) * (turn & -turn);
      const Result result = dive();
      if (result == Result::kFound) return true;
      if (result == Result::kNone) failed = target_;
      if (failed >= highest_) return false;
    }
    return false;
  }

  template <typename Visit>
  void each_offset(Visit visit) const {
    for (size_t i = 0; i < items_.size(); ++i) visit(items_[i].piece, offsets_[i]);
  }

 private:
  struct Item {
    int32_t begin, end;
    int64_t bytes;
    int32_t piece;
  };
  static constexpr int32_t kNoValley = std::numeric_limits<int32_t>::max();
  struct Edge {
    int32_t low = 0, high = 0;  // the valley's sections
    int32_t ways = kNoValley;
    bool right = false;
  };
  enum class Result { kFound, kNone, kCut };
  // A stretch of sections: the decisions made in it alone rule out every packing.
  struct Conflict {
    int32_t begin = 0, end = 0;
  };
  struct State {
    uint64_t key = 0;
    Conflict conflict;
  };

  // Orders the ways: first the longest piece, or the one with most bytes, with some randomness.
  void rank(int64_t round, int64_t turn) {
    for (size_t i = 0; i < items_.size(); ++i) {
      const double bytes = static_cast<double>(items_[i].bytes), length = items_[i].end - items_[i].begin;
      const double by[] = {length * length * bytes, bytes * bytes * length};
      rank_[i] = by[turn % 2] * (round == 1 ? 1 : 0.25 + static_cast<double>(draw() >> 40) / (1 << 24));
    }
  }

  uint64_t draw() {  // the next random number (splitmix64)
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  int64_t height(int32_t s) const { return s < 0 || s >= sections_ || left_[s] == 0 ? kTop : floor_[s]; }

  // Pieces of the same lifetime are interchangeable: one directly on the other lies in their order, and of equal ones
  // the first is next.
  bool may_place(int32_t i) const {
    if (offsets_[i] >= 0) return false;
    const Item& x = items_[i];
    if (i > 0 && offsets_[i - 1] < 0 && items_[i - 1].begin == x.begin && items_[i - 1].end == x.end &&
        items_[i - 1].bytes == x.bytes)
      return false;
    const int32_t j = top_[x.begin];
    return j < i || items_[j].begin != x.begin || items_[j].end != x.end;
  }

  bool fits(int32_t i, const Edge& e) const {
    return items_[i].begin >= e.low && items_[i].end <= e.high && may_place(i);
  }

  const std::vector<int32_t>& at(const Edge& e) const {
    return e.right ? from_right_[e.high] : from_left_[e.low];
  }

  // If no piece inside the valley can cover a section of it, all below the lowest piece that can lie above is wasted,
  // which is too much.
  bool has_hole(int32_t low, int32_t high) {
    const int64_t here = floor_[low];
    int64_t least = kTop, spare = kTop;
    int32_t covered = low;
    for (int32_t s = low; s < high; ++s) {
      for (int32_t i : from_left_[s]) {
        if (offsets_[i] >= 0 || items_[i].end > high) continue;
        covered = std::max(covered, items_[i].end);
        least = std::min(least, items_[i].bytes);
      }
      work_ -= 1 + static_cast<int64_t>(from_left_[s].size());
      if (covered <= s) spare = std::min(spare, target_ - here - left_[s]);
    }
    const int64_t wall = std::min(height(low - 1), height(high)) - here;
    return spare < std::min(wall, least);
  }

  // A piece that becomes level with a wall, or is as wide as the valley, leaves fewer edges.
  double match(int32_t i, const Edge& e) const {
    constexpr double kLevel = 8, kWide = 4;
    const Item& x = items_[i];
    const int64_t top = floor_[e.low] + x.bytes;
    const bool first = x.begin == e.low, last = x.end == e.high;
    return (first && last ? kWide : 1) * (first && top == height(e.low - 1) ? kLevel : 1) *
           (last && top == height(e.high) ? kLevel : 1);
  }

  Conflict around(const Edge& e) const { return {std::max(e.low - 1, 0), std::min(e.high + 1, sections_)}; }

  // The fewest ways in proportion to how often branches ended there: the rule "weighted degree" of constraint search.
  bool before(const Edge& a, const Edge& b) const {
    const auto weight = [&](const Edge& e) { return weight_[e.right ? e.high - 1 : e.low]; };
    const double x = a.ways * weight(b), y = b.ways * weight(a);
    if (x != y) return x < y;
    return narrow_first_ ? a.high - a.low < b.high - b.low : floor_[a.low] < floor_[b.low];
  }

  void blame(const Edge& e) {
    for (int32_t s = e.low; s < e.high; ++s) weight_[s] += blame_;
    blame_ *= 1.0005;  // recent failures count most
    if (blame_ < 1e100) return;
    for (double& weight : weight_) weight = 1 + weight / blame_;
    blame_ = 1;
  }

  // The edge with fewest ways of the valley from `low` to `high`.
  Edge fewest_ways(int32_t low, int32_t high) {
    Edge best{low, high};
    const int64_t here = height(low);
    if (here == kTop || height(low - 1) <= here || height(high) <= here) return best;
    if (has_hole(low, high)) return {low, high, 0, false};
    for (const bool right : {false, true}) {
      Edge edge{low, high, 0, right};
      for (int32_t i : at(edge)) edge.ways += fits(i, edge);
      work_ -= static_cast<int64_t>(at(edge).size());
      const int32_t s = right ? high - 1 : low;
      edge.ways += floor_[s] + left_[s] < target_;
      if (edge.ways < best.ways) best = edge;
    }
    return best;
  }

  // Only stretches next to recent decisions are looked at again.
  Edge fewest_ways() {
    Edge best;
    for (int32_t low = 0; low < sections_;) {
      Edge& edge = stretch_[low];
      if (edge.high < 0) {
        int32_t high = low + 1;
        const int64_t here = height(low);
        while (high < sections_ && height(high) == here) ++high;
        edge = fewest_ways(low, high);
        work_ -= high - low;
      }
      --work_;
      if (edge.ways == 0) return edge;
      if (edge.ways < kNoValley && (best.ways == kNoValley || before(edge, best))) best = edge;
      low = edge.high;
    }
    return best;
  }

  void forget(int32_t begin, int32_t end) {
    int32_t first = std::max(begin - 1, 0);
    while (first > 0 && height(first - 1) == height(first)) stretch_[first--].high = -1;
    for (int32_t s = first; s <= std::min(end, sections_ - 1); ++s) stretch_[s].high = -1;
  }

  void put(int32_t i, int64_t sign) {
    const Item& x = items_[i];
    for (int32_t s = x.begin; s < x.end; ++s) {
      floor_[s] += sign * x.bytes;
      left_[s] -= sign * x.bytes;
    }
    work_ -= x.end - x.begin;
    forget(x.begin, x.end);
    placed_ ^= piece_key_[i];
    unplaced_ -= static_cast<int32_t>(sign);
  }

  Result place(int32_t i) {
    const Item x = items_[i];
    const std::vector<int32_t> under(top_.begin() + x.begin, top_.begin() + x.end);
    offsets_[i] = floor_[x.begin];
    put(i, 1);
    std::fill(top_.begin() + x.begin, top_.begin() + x.end, i);
    ++depth_;
    const Result result = dive();
    --depth_;
    if (result == Result::kFound) return result;
    put(i, -1);
    offsets_[i] = -1;
    std::copy(under.begin(), under.end(), top_.begin() + x.begin);
    return result;
  }

  // Nothing takes the lowest address at the edge. Up to the next piece of the valley nothing can. A piece that comes
  // to lie there reaches over a wall, or lies on a piece that the rest of the valley holds.
  Result waste(const Edge& e) {
    int64_t least = kTop;
    int32_t near = e.right ? e.low : e.high;
    for (int32_t s = e.low; s < e.high; ++s)
      for (int32_t i : from_left_[s]) {
        const Item& x = items_[i];
        if (offsets_[i] >= 0 || x.end > e.high || (e.right ? x.end == e.high : x.begin == e.low)) continue;
        least = std::min(least, x.bytes);
        near = e.right ? std::max(near, x.end) : std::min(near, x.begin);
      }
    work_ -= e.high - e.low;
    const int32_t low = e.right ? near : e.low, high = e.right ? e.high : near;
    const int64_t wall = std::min(height(e.low - 1), height(e.high));
    const int64_t rise = std::min(wall - floor_[e.low], least);
    for (int32_t s = low; s < high; ++s)
      if (left_[s] > 0 && floor_[s] + left_[s] > target_ - rise) {
        conflict_ = around(e);
        return Result::kNone;
      }
    std::vector<int32_t> under(top_.begin() + low, top_.begin() + high);
    for (int32_t s = low; s < high; ++s) {
      floor_[s] += rise;
      wasted_ += static_cast<uint64_t>(rise) * waste_key_[s];
      top_[s] = -1;
    }
    forget(low, high);
    ++depth_;
    const Result result = dive();
    --depth_;
    if (result == Result::kFound) return result;
    for (int32_t s = low; s < high; ++s) {
      floor_[s] -= rise;
      wasted_ -= static_cast<uint64_t>(rise) * waste_key_[s];
      top_[s] = under[s - low];
    }
    forget(low, high);
    return result;
  }

  Result dive() {
    if (unplaced_ == 0) return Result::kFound;
    work_ -= kPerState;
    if (nodes_-- <= 0 || work_ <= 0 ||
        depth_ > std::min(kDepth * static_cast<int64_t>(items_.size()), kDeepest))
      return Result::kCut;
    const uint64_t now = state();
    State& known = hopeless_[now >> (64 - kStateBits)];
    if (known.key == now) {
      conflict_ = known.conflict;
      return Result::kNone;
    }
    const Edge edge = fewest_ways();
    Conflict sum = around(edge);
    const auto fail = [&] {
      known = {now, sum};
      conflict_ = sum;
      return Result::kNone;
    };
    if (edge.ways == 0) {
      blame(edge);
      return fail();
    }
    // True if the decision here had no part in the failure: every other way here would fail as well.
    const auto apart = [&](int32_t begin, int32_t end) {
      if (conflict_.end <= begin || end <= conflict_.begin) return true;
      sum = {std::min(sum.begin, conflict_.begin), std::max(sum.end, conflict_.end)};
      return false;
    };
    std::vector<int32_t> ways;
    for (int32_t i : at(edge))
      if (fits(i, edge)) ways.push_back(i);
    for (int32_t i : ways) score_[i] = rank_[i] * match(i, edge);
    std::stable_sort(ways.begin(), ways.end(), [&](int32_t a, int32_t b) { return score_[a] > score_[b]; });
    for (int32_t i : ways)
      if (const Result result = place(i); result != Result::kNone || apart(items_[i].begin, items_[i].end))
        return result;
    const int32_t s = edge.right ? edge.high - 1 : edge.low;
    if (floor_[s] + left_[s] < target_)
      if (const Result result = waste(edge); result != Result::kNone || apart(edge.low, edge.high))
        return result;
    return fail();
  }

  uint64_t state() const {
    const uint64_t z = (placed_ ^ wasted_ ^ static_cast<uint64_t>(target_)) * 0x9E3779B97F4A7C15u;
    return z ^ (z >> 29);
  }

  static constexpr int64_t kShares[] = {4, 0, 1, 0,
                                        2, 0, 1, 0};  // of the target's excess over the bound, in quarters
  static constexpr int kStateBits = 20;
  static constexpr int64_t kPerState = 100;  // of work: a distant line of memory is read
  static constexpr int64_t kNodesPerPiece = 16;
  // Decisions per piece on a branch, and in all: they bound the stack.
  static constexpr int64_t kDepth = 4;
  static constexpr int64_t kDeepest = kDepth * kMostSearched;

  const int64_t most_, alignment_, highest_;
  int64_t target_ = 0;
  int64_t& work_;
  int64_t nodes_ = 0, depth_ = 0;
  bool narrow_first_ = false;
  std::vector<int32_t> full_;  // per section: how many sections that matter come before it
  std::vector<Item> items_;
  int32_t sections_ = 0, unplaced_ = 0;
  std::vector<std::vector<int32_t>> from_left_, from_right_;
  std::vector<int64_t> floor_, left_;
  double blame_ = 1;
  std::vector<double> weight_;  // per section: how often no way was left in a valley there
  std::vector<int32_t> top_;
  std::vector<Edge> stretch_;  // by its first section; high < 0: has to be looked at again
  std::vector<int64_t> offsets_;
  std::vector<double> rank_, score_;
  std::vector<uint64_t> piece_key_, waste_key_;
  Conflict conflict_;
  std::vector<State> hopeless_;  // the last state of each slot in which there was no packing
  uint64_t placed_ = 0, wasted_ = 0, state_ = 1;
};

}  // namespace

bool fill(const Pieces& pieces, int64_t target, int64_t& work, Packing& packing) {
  if (pieces.size() == 0 || pieces.size() > kMostSearched || target < pieces.most) return false;
  Filler filler(pieces, target, work);
  if (!filler.run()) return false;
  packing.height = 0;
  filler.each_offset([&](int32_t piece, int64_t offset) {
    packing.offsets[piece] = offset;
    packing.height = std::max(packing.height, offset + pieces.all[piece].bytes);
  });
  return true;
}

}  // namespace cairn::plan
