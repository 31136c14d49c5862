// What people do by hand, priced and laid out as the planner's own plans are: the peers of the report's
// curve.
#pragma once
#include <string>
#include <vector>

#include "runtime/plan/index.h"

namespace cairn::plan {

struct Baseline {
  std::string name, words;  // "per_layer", "every layer checkpointed (12 layers)"
  int64_t peak_bytes = 0;   // most bytes alive at once
  int64_t arena_bytes = 0;  // what they take, laid out: the budget it needs
  double seconds = 0;
};

// The layers that a person would checkpoint, numbered in forward order: the outermost regions (inside of one
// around everything), or, where the problem names no regions, the stretches of forward between which a single
// value crosses. -1: in no layer.
struct Layers {
  Layers(const Problem&, const Index&);

  std::vector<int32_t> of_op;  // forward and backward ops
  int32_t count = 0;
};

// keep_all; per_layer: what a layer computes for itself is recomputed in backward; sqrt_n: the same for groups
// of about the square root of the layers (Chen et al., arXiv 1604.06174). Each is the plan, without a budget, of the
// problem with the policy RECOMPUTE for its layers or groups, and no other regions: what a model takes that is written
// so. Policies, links and the budget are ignored. What may not be recomputed is kept; each op runs at most twice. other: the same
// model in another form, with ops in place or without; of each the one counts that takes less memory, or else has more ops.
std::vector<Baseline> baselines(const Problem&, const Problem* other = nullptr);

}  // namespace cairn::plan
