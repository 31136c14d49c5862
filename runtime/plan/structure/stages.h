// Cuts the forward part where a single value crosses. The result is a chain of stages, each with the backward ops
// that read its values. Values that cross further (long skips, tables read everywhere) are always kept on the device
// here.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/pricing/rules.h"

namespace cairn::plan {

struct Stage {
  int32_t begin = 0, end = 0;            // range of forward ops
  int32_t back_begin = 0, back_end = 0;  // the ops of backward while its values are needed
  int32_t in = -1, out = -1;             // values that cross into and out of it; -1: none
};

struct Stages {
  Stages(const Problem&, const Index&);

  std::vector<Stage> all;
  // Whether the graph is a chain: it has a cut every few ops, and no long span was left out.
  bool chain = false;
  std::vector<int32_t> of_op;        // per forward op: its stage
  std::vector<int32_t> of_backward;  // per op; the stage during which it runs, -1: no saved value is left
  // Per op of backward: bytes made by backward that are alive before the op runs, and while it runs, its workspace
  // included.
  std::vector<int64_t> backward_before, backward_live;
};

}  // namespace cairn::plan
