// A layout that changes: blocks come and go under a ceiling that may differ from time to time. A change costs what lies
// beside it in time, however many blocks there are. For searches that change a plan together with its layout.
// Deterministic; work is counted.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/layout/cheapest_place.h"

namespace cairn::plan {

class Packer {
 public:
  // Times of blocks are from 0 up to, not including, `times`; a ceiling holds for a stretch of `stretch` times, and is
  // `floor` or above.
  Packer(int64_t times, int64_t stretch, int64_t floor);

  // Takes memory from time `begin` to time `end`, both included. offset: -1 for none yet; a place must be free. Returns
  // the number of the block, which another one may have had before the last commit().
  int32_t add(int64_t begin, int64_t end, int64_t bytes, int64_t offset);
  void remove(int32_t block);
  // The ceiling of the stretches from `first` to `last` becomes `down` bytes lower, but not below the floor.
  void lower(int32_t first, int32_t last, int64_t down);
  // Puts what has no place where least is in its way, which is thrown out and put elsewhere in turn; so, too, what stands out
  // above the ceiling of the stretches from `first` to `last`. False, and all places as they were, if not all fit.
  // `work` is in visits of neighbours.
  bool settle(int32_t first, int32_t last, int64_t work);
  // The ceiling of what was touched since the last commit() as low as the blocks below it allow.
  void tighten(int32_t first, int32_t last);
  // What was done since the last commit() stays, or is undone.
  void commit();
  void roll_back() { undo_to(0); }

  // The floor becomes lower, and each ceiling as low as the blocks below it allow; nothing of that is undone.
  void lower_floor(int64_t floor);

  int64_t offset(int32_t block) const { return blocks_[block].offset; }
  int64_t ceiling(int32_t stretch) const { return ceiling_[stretch]; }
  // Bytes by which ceilings are above the floor, summed over the stretches.
  int64_t excess() const { return excess_; }
  // Blocks that take memory at some time from begin to end, placed or not.
  void beside(int64_t begin, int64_t end, std::vector<int32_t>& found) const;

 private:
  struct Block {
    int64_t begin, end, bytes, offset;
    int64_t cost;        // to throw it out for the first time: bytes x lifetime
    double hard;         // to place: bytes x sqrt(lifetime); the hardest of those that wait is next
    int64_t held = 0;    // until which turn it may not be thrown out
    int64_t seen = 0;    // the call of settle() that `held` and `thrown` are of
    int32_t thrown = 0;  // how often
  };
  struct Next {
    double hardness;
    int32_t block;
    bool operator<(const Next& other) const {
      return hardness != other.hardness ? hardness < other.hardness : block > other.block;
    }
  };
  enum class Did : uint8_t { kAdded, kRemoved, kMoved, kCeiling };
  struct Undo {
    Did did;
    int32_t index;  // block or stretch
    int64_t before;
  };
  int32_t stretch_of(int64_t time) const { return static_cast<int32_t>(time / stretch_); }
  void link(int32_t block);
  void unlink(int32_t block);
  void update(int32_t leaf);
  template <typename Visit>
  void each(int64_t begin, int64_t end, Visit visit) const;
  int64_t limit(const Block&) const;
  Block& touched(int32_t block);
  void set_ceiling(int32_t stretch, int64_t to);
  void move(int32_t block, int64_t offset);
  void undo_to(size_t size);
  void push(int32_t block);
  bool put(int32_t block, int64_t& work);

  const int64_t stretch_;
  int64_t floor_;
  int32_t leaves_ = 1;
  std::vector<int64_t> latest_;  // a tree over the stretches: the latest end of what begins there
  std::vector<std::vector<int32_t>> starts_;  // per stretch: what begins there
  std::vector<int64_t> ceiling_;
  int64_t excess_ = 0;
  std::vector<Block> blocks_;
  std::vector<int32_t> free_, fresh_;
  std::vector<Undo> undo_;
  std::vector<Next> next_;  // a heap
  CheapestPlace place_;
  int64_t turn_ = 0, call_ = 0;
};

}  // namespace cairn::plan
