// Finds the offset of a block at the least cost of ejecting what is in its way. Ejection and the packer share this
// step. Equal offsets are drawn from by a generator that gives the same on every machine.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace cairn::plan {

class CheapestPlace {
 public:
  // A block that is alive at the same time: its memory, and the cost of ejecting it.
  struct Beside {
    int64_t begin, end, cost;
    int32_t block;
  };
  std::vector<Beside> beside;  // alive at the same time as the block to place

  uint32_t draw() {  // the next random number (xorshift)
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }

  // The offset, at most `last`. Candidates are the bottom, the top of another block, right under another block, and
  // `last`.
  int64_t find(int64_t bytes, int64_t last) {
    changes_.clear();
    int64_t cost = 0, best = std::numeric_limits<int64_t>::max(), offset = 0;
    for (const Beside& b : beside) {
      if (const int64_t at = b.begin - bytes + 1; at <= 0)
        cost += b.cost;
      else if (at <= last)
        changes_.push_back({at, b.cost});
      if (b.end <= last) changes_.push_back({b.end, -b.cost});
    }
    sort_changes(last);
    uint32_t ties = 0;
    const auto offer = [&](int64_t at) {
      if (at < 0 || at > last || cost > best) return;
      ties = cost < best ? 1 : ties + 1;
      if (cost < best || draw() % ties == 0) offset = at;
      best = cost;
    };
    offer(0);
    for (size_t k = 0; k < changes_.size();) {
      const int64_t at = changes_[k].at;
      bool starts = false, stops = false;
      const int64_t below = cost;
      int64_t then = cost;
      for (; k < changes_.size() && changes_[k].at == at; ++k) {
        (changes_[k].cost > 0 ? starts : stops) = true;
        then += changes_[k].cost;
      }
      cost = below;
      if (starts) offer(at - 1);
      cost = then;
      if (stops) offer(at);
    }
    offer(last);
    return offset;
  }

 private:
  // A change as the lower end of the block moves up: another block begins, or stops, to be in its way.
  struct Change {
    int64_t at, cost;
  };

  // The changes are spread over the addresses. Only those of one range of addresses are sorted at a time.
  void sort_changes(int64_t last) {
    constexpr size_t kFew = 32;
    const auto sort = [](auto begin, auto end) {
      std::sort(begin, end, [](const Change& a, const Change& b) { return a.at < b.at; });
    };
    const size_t count = changes_.size();
    if (count <= kFew || last == 0) return sort(changes_.begin(), changes_.end());
    const double per_byte = static_cast<double>(count - 1) / static_cast<double>(last);
    const auto stretch = [&](const Change& c) {
      return static_cast<size_t>(static_cast<double>(c.at) * per_byte);
    };
    ends_.assign(count + 1, 0);
    for (const Change& c : changes_) ++ends_[stretch(c)];
    for (size_t k = 1; k <= count; ++k) ends_[k] += ends_[k - 1];
    sorted_.resize(count);
    for (const Change& c : changes_) sorted_[--ends_[stretch(c)]] = c;
    for (size_t k = 0; k < count; ++k)
      if (ends_[k + 1] - ends_[k] > 1) sort(sorted_.begin() + ends_[k], sorted_.begin() + ends_[k + 1]);
    std::swap(changes_, sorted_);
  }

  std::vector<Change> changes_, sorted_;
  std::vector<int32_t> ends_;  // per range of addresses: the end, later the begin, of its changes
  uint32_t state_ = 2463534242;
};

}  // namespace cairn::plan
