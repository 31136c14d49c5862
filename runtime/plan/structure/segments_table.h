// The dynamic program of Segments: checkpoints of several levels by (first, end, room), as rotor has them for chains
// (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova: Optimal checkpointing for heterogeneous chains, 2019). Here any
// number of values may cross a cut; those made since the cut before count.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/structure/segments.h"

namespace cairn::plan {

class SegmentsTable {
 public:
  // For all rooms up to `most`, in bytes besides values that are always kept. Much smaller rooms are resolved
  // coarsely.
  SegmentsTable(const Segments&, int64_t most);

  // With an option: it says what group `first` does. Without: the values that groups `first` to `cut` - 1 make for
  // later ones are held from op `from` on; 0: from forward on.
  struct Pass {
    int32_t first, cut, from;
    const Segments::Option* option;
  };
  std::vector<Pass> passes(int64_t room) const;  // empty: the room is too small
  int64_t most() const { return most_; }

 private:
  // How the groups from one on are passed the first time: so many of them, with an option if it is one.
  struct First {
    uint8_t groups = 0, option = kNoOption;
  };
  static constexpr uint8_t kNoOption = 255;
  size_t at(int32_t s, int32_t t) const {
    return (static_cast<size_t>(t) * static_cast<size_t>(t - 1) / 2 + static_cast<size_t>(s)) *
           static_cast<size_t>(levels_ + 1);
  }
  int32_t up(int64_t bytes, int64_t unit) const { return static_cast<int32_t>((bytes + unit - 1) / unit); }
  int64_t back_begin(int32_t end) const { return segments_.groups_[end - 1].back_begin; }
  void fill(int32_t s, int32_t t);
  void pass_first(int32_t s);
  void place(int32_t s, int32_t t, int32_t m, std::vector<Pass>& passes) const;

  const Segments& segments_;
  const int32_t count_;
  const int64_t most_;
  int64_t unit_ = 1, fine_ = 1;
  int32_t levels_ = 0, fine_levels_ = 0;
  std::vector<double> sums_;
  std::vector<int64_t>
      pass_;                 // per (s, t): most bytes of their own while groups s to t - 1 are passed through
  std::vector<float> cost_;  // of groups s to t - 1, whose values are recomputed, by room
  std::vector<uint8_t> split_;
  std::vector<int32_t> splits_;  // scratch memory for one (s, t)
  std::vector<float> rest_;      // seconds for groups s to the last one, by room in finer units
  std::vector<First> first_;
};

}  // namespace cairn::plan
