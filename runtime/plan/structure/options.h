// The options of one stage: which of its ops to recompute, and which outputs to offload. Each is simulated with the
// stage's own backward ops, and the Pareto set remains. Identical stages are priced once.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/structure/stages.h"

namespace cairn::plan {

// Bytes count values that the stage makes. If Stage::out is not kept, an earlier run recomputes it while the next
// stage's backward runs. Below this is "the run before".
struct Option {
  int64_t kept = 0;        // on the device from forward until the stage's own backward
  int64_t peak = 0;        // most bytes in its backward or forward, gradients included
  int64_t held = 0;        // from the run before until its own backward, `out` included
  int64_t moved = 0;       // offloaded over the link
  double seconds = 0;      // of ops run again
  uint64_t again = 0;      // ops run again, bit per op from Stage::begin
  uint64_t moves = 0;      // ops whose outputs are offloaded
  bool gives_out = false;  // `out` is not kept
  bool needs_in = false;   // recomputing `out` needs `in`
  bool twice = false;      // what the run before makes is not held, but recomputed once more
};

class OptionSets {
 public:
  // link: -1 for none. most: options per set.
  OptionSets(const Problem&, const Index&, const Intervals&, const Rules&, const Stages&, int32_t link,
             size_t most);

  const std::vector<Option>& of(size_t stage) const { return sets_[set_of_[stage]]; }
  // Equal stages have one set.
  size_t count() const { return sets_.size(); }
  size_t number(size_t stage) const { return static_cast<size_t>(set_of_[stage]); }
  const std::vector<Option>& at(size_t number) const { return sets_[number]; }
  size_t largest() const;
  // Whether a stage was too large to be looked into: its values are kept.
  bool whole() const { return whole_; }
  // Writes an option's choices into the retention points.
  void apply(size_t stage, const Option&, RetentionPoints&) const;

 private:
  const Problem& p_;
  const Index& index_;
  const Intervals& intervals_;
  const Rules& rules_;
  const Stages& stages_;
  int32_t link_;
  bool whole_ = false;
  std::vector<std::vector<Option>> sets_;
  std::vector<int32_t> set_of_;
};

}  // namespace cairn::plan
