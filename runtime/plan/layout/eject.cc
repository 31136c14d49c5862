// Repair by ejection: a piece that ends above the target is put where it costs least. Pieces in its way there are
// ejected and placed again later. A piece costs its bytes times how often it was ejected before, so that pieces that
// are hard to place come to rest first (the "breakout" idea of constraint search). Only neighbours in time of a moved
// piece are looked at.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/plan/layout/cheapest_place.h"
#include "runtime/plan/layout/layout_parts.h"

namespace cairn::plan {
namespace {

// Pieces by begin, with the latest end per stretch of the list: finds all pieces that are alive together with a given
// one.
class Neighbours {
 public:
  explicit Neighbours(const Pieces& p) : p_(p) {
    while (leaves_ * kLeaf < p.size()) leaves_ *= 2;
    latest_.assign(2 * static_cast<size_t>(leaves_), -1);
    for (int32_t i = 0; i < p.size(); ++i)
      latest_[leaves_ + i / kLeaf] = std::max(latest_[leaves_ + i / kLeaf], p.all[i].end);
    for (int32_t node = leaves_ - 1; node > 0; --node)
      latest_[node] = std::max(latest_[2 * node], latest_[2 * node + 1]);
  }

  template <typename Visit>
  void each(const Piece& of, Visit visit) const {
    list(1, 0, leaves_, of.begin, p_.begin_row[of.end], visit);
  }

 private:
  static constexpr int32_t kLeaf = 16;

  // Of the first `limit` pieces (those that begin before `of` ends) those that end after `begin`.
  template <typename Visit>
  void list(int32_t node, int32_t low, int32_t high, int32_t begin, int32_t limit, Visit& visit) const {
    if (low * kLeaf >= limit || latest_[node] <= begin) return;
    if (node >= leaves_) {
      const int32_t stop = std::min({(low + 1) * kLeaf, limit, p_.size()});
      for (int32_t i = low * kLeaf; i < stop; ++i)
        if (p_.all[i].end > begin) visit(i);
      return;
    }
    const int32_t middle = (low + high) / 2;
    list(2 * node, low, middle, begin, limit, visit);
    list(2 * node + 1, middle, high, begin, limit, visit);
  }

  const Pieces& p_;
  int32_t leaves_ = 1;
  std::vector<int32_t> latest_;
};

class Ejector {
 public:
  Ejector(const Pieces& p, int64_t target, const Packing& from)
      : p_(p),
        target_(target / p.alignment * p.alignment),
        neighbours_(p),
        offsets_(from.offsets),
        ejected_(p.all.size(), 0),
        settled_(p.all.size(), 0) {
    const auto area = [](const Piece& x) { return static_cast<double>(x.bytes) * (x.end - x.begin); };
    double largest = 0;
    for (const Piece& x : p.all) largest = std::max(largest, area(x));
    for (const Piece& x : p.all) {
      cost_.push_back(1 + static_cast<int64_t>(area(x) / largest * kCostRange));
      hard_.push_back(static_cast<double>(x.bytes) * std::sqrt(x.end - x.begin));
    }
    for (int32_t i = 0; i < p.size(); ++i)
      if (offsets_[i] < 0 || offsets_[i] + p.all[i].bytes > target_) throw_out(i);
  }

  bool run(int64_t& work) {
    while (!waiting_.empty()) {
      if (work <= 0) return false;
      std::pop_heap(waiting_.begin(), waiting_.end());
      const int32_t i = waiting_.back().piece;
      waiting_.pop_back();
      put(i, work);
    }
    return true;
  }
  std::vector<int64_t>& offsets() { return offsets_; }

 private:
  struct Waiting {
    double hardness;
    int32_t piece;
    bool operator<(const Waiting& other) const {
      return hardness != other.hardness ? hardness < other.hardness : piece > other.piece;
    }
  };

  static constexpr double kCostRange = 1 << 20;

  void throw_out(int32_t i) {
    offsets_[i] = -1;
    waiting_.push_back({hard_[i] * (1 + ejected_[i]), i});
    std::push_heap(waiting_.begin(), waiting_.end());
  }

  void put(int32_t i, int64_t& work) {
    const Piece& piece = p_.all[i];
    place_.beside.clear();
    neighbours_.each(piece, [&](int32_t j) {
      if (j == i || offsets_[j] < 0) return;
      const int64_t held = settled_[j] > turn_ ? 1000 : 1;
      place_.beside.push_back(
          {offsets_[j], offsets_[j] + p_.all[j].bytes, held * cost_[j] * (1 + ejected_[j]), j});
    });
    work -= 16 + 4 * static_cast<int64_t>(place_.beside.size());
    const int64_t offset = place_.find(piece.bytes, target_ - piece.bytes);
    for (const CheapestPlace::Beside& b : place_.beside)
      if (b.begin < offset + piece.bytes && offset < b.end) {
        ++ejected_[b.block];
        throw_out(b.block);
      }
    offsets_[i] = offset;
    settled_[i] = turn_ + 1 + static_cast<int64_t>(place_.draw() % 3);
    ++turn_;
  }

  const Pieces& p_;
  const int64_t target_;
  Neighbours neighbours_;
  std::vector<int64_t> cost_;     // of ejecting a piece the first time: bytes x lifetime, scaled
  std::vector<double> hard_;      // to place: bytes x sqrt(lifetime); the hardest waiting one is next
  std::vector<int64_t> offsets_;  // per piece; -1: it waits for a place
  std::vector<int32_t> ejected_;  // how often each piece was ejected
  std::vector<int64_t> settled_;  // until this turn the piece may not be ejected
  std::vector<Waiting> waiting_;  // pieces without a place: a heap, the hardest first
  CheapestPlace place_;
  int64_t turn_ = 0;
};

}  // namespace

bool eject(const Pieces& pieces, int64_t target, int64_t& work, Packing& packing) {
  Ejector ejector(pieces, target, packing);
  if (!ejector.run(work)) return false;
  packing.offsets = std::move(ejector.offsets());
  packing.height = 0;
  for (int32_t i = 0; i < pieces.size(); ++i)
    packing.height = std::max(packing.height, packing.offsets[i] + pieces.all[i].bytes);
  return true;
}

}  // namespace cairn::plan
