// One option per stage, so that all fit together: a dynamic program from the first stage to the last, over
// the bytes kept by the stages so far. Exact where no two partial plans fall into one cell of its table.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/structure/options.h"

namespace cairn::plan {

struct Chosen {
  bool found = false;
  std::vector<const Option*> options;  // one per stage; they belong to the sets
  double seconds = 0;                  // of ops run again, and of expected stalls
  int64_t kept = 0;                    // bytes on the device at the beginning of backward
};

// Copies may be late: their seconds add up while compute goes on. stages: how many stages' copies may be late at
// once. share: what share of these seconds counts, as the copies may still catch up.
struct Lag {
  double stages = 8, share = .05;
};

// room: bytes of the device besides persistent values. link: -1 for none. max_work: about the steps of the program.
// price: seconds per byte by which the table sorts; 0: searches for a good one, and returns it.
Chosen choose_options(const Problem&, const Stages&, const OptionSets&, int64_t room, int32_t link, Lag lag,
                      int64_t max_work, double& price);

}  // namespace cairn::plan
