// Optimizer state, master weights and gradients that may be offloaded.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/compile/stages.h"
#include "runtime/costs/model.h"

namespace cairn::engine {

// Values that are offloaded together.
struct StateCandidate {
  enum class What : uint8_t {
    kStates,   // the states of an update op
    kMaster,   // its master weight, if the states are offloaded
    kReached,  // values that micro-batches use: only where kernels can use them in place
  };
  What what;
  std::vector<int32_t> values;
  int64_t bytes = 0;
  double update_seconds = 0;  // of the update op, which hides copies
  int32_t state = -1;         // of kMaster: the first of the states
};

// For each update, its states and, if no op of the micro-batch reads it, its master weight.
std::vector<StateCandidate> state_candidates(const graph::JointGraph&, const costs::Model&);

// Adds the gradients and the states of fused updates.
void add_reached(const graph::JointGraph&, std::vector<StateCandidate>&);

// The candidates that are taken go to the first tier with room, of the plan's first `links`: into Lowered::offloaded.
// Copies of activations can no longer use that room. Where there is not enough for all of them, the largest come
// first, and those that would lose most of their bytes to the ends of pages are kept on the device.
Lowered with_tiers(Lowered, const std::vector<StateCandidate>&, const std::vector<bool>& taken, size_t links);

}  // namespace cairn::engine
