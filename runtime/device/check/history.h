// The last accesses to every byte of a block: enough to find each race, and no more. A write hides all that
// came before it (they were ordered before it, or the race is reported already); of reads the last per queue
// counts.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/check/clock.h"

namespace cairn::device::check {

struct Access {
  Epoch when;
  std::string what;  // "kernel launch 12 on compute: input 0"
};

class History {
 public:
  // Notes an access to [begin, end). Returns an earlier one that races with it: unordered with `now` (the
  // clock of the accessing work) and one of the two writes.
  std::optional<Access> access(int64_t begin, int64_t end, bool write, const Access& access,
                               const VectorClock& now);
  // Forgets accesses that `seen` has seen. Returns true if none is left.
  bool forget(const VectorClock& seen);
  // An access that is not ordered before `seen`, if there is one.
  std::optional<Access> pending(const VectorClock& seen) const;
  size_t cells() const { return cells_.size(); }

 private:
  struct Cell {
    int64_t end;
    std::optional<Access> write;
    std::vector<Access> reads;  // one per queue
  };
  using Cells = std::map<int64_t, Cell>;
  Cells::iterator split(
      int64_t at);  // the first cell that begins at or after `at`, after cutting the one across

  Cells cells_;  // by begin; disjoint; bytes without one were never touched
};

}  // namespace cairn::device::check
