// One stage in bit masks, so that a choice of what to run again is priced in about a microsecond.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/structure/options.h"

namespace cairn::plan {

struct StageModel {
  static constexpr int32_t kMax = 60;  // most ops, and most values

  // False if the stage is too large; then only `fixed` (bytes that are always kept) is set. link: the link for
  // offloading.
  bool build(const Problem&, const Index&, const Intervals&, const Rules&, const Stages&, size_t stage,
             bool link = false);
  // Equal keys: the stages are equal in everything that price() looks at.
  std::vector<int64_t> key() const;
  // again, moves: bit per op. Ops of `moves` fetch their outputs back over the link.
  Option price(uint64_t again, uint64_t moves, bool twice) const;

  struct LocalOp {
    double seconds;
    int64_t workspace;
    uint64_t inputs, outputs;  // bit masks of values
    bool reads_in;
  };
  struct Backward {
    uint64_t reads;
    bool reads_in;
    int64_t before, live;  // as in Stages
  };
  std::vector<LocalOp> ops;
  std::vector<int64_t> bytes;  // per value
  std::vector<int32_t> maker;  // per value: the op of this stage that makes it
  std::vector<Backward> backward;
  std::vector<int32_t>
      last_read;            // per value: local op of the last forward reader, ops.size(): beyond the stage
  uint64_t saved = 0;       // values that backward reads, also beyond the stage
  uint64_t stuck = 0;       // values that are always kept
  uint64_t out = 0;         // the value that crosses to the next stage
  uint64_t candidates = 0;  // ops that may be run again, or whose outputs may be offloaded
  uint64_t once = 0;        // those of them that may not be run again
  uint64_t forced = 0, forced_moves = 0;  // ops that policies have recomputed, or offloaded
  int64_t fixed = 0;
  int64_t page = 0;  // smaller outputs are not worth a copy
};

}  // namespace cairn::plan
