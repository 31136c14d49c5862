// Optimizer state, master weights and gradients that may leave the device, in what leaves together.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/compile/program.h"
#include "runtime/costs/model.h"

namespace cairn::engine {

// State that leaves together.
struct StateCandidate {
  enum class What : uint8_t {
    kStates,   // of an update op
    kMaster,   // its master weight, if they leave
    kReached,  // what micro-batches use, too: only where they reach it
  };
  What what;
  std::vector<int32_t> values;
  int64_t bytes = 0;
  double update_seconds = 0;  // of the op that copies of it hide behind
  int32_t state = -1;         // of a master weight: the first of those states
};

// Of each update: its states and, where no op of the micro-batch reads it, its master weight.
std::vector<StateCandidate> state_candidates(const graph::JointGraph&, const costs::Model&);

// Gradients, which micro-batches add to, and the states of updates that are part of backward.
void add_reached(const graph::JointGraph&, std::vector<StateCandidate>&);

// Gives what is taken the first tier with room, of the plan's first `links`, out of which copies of activations lose it:
// CompiledPlan::offloaded. Where not all has room, the largest has it first, and what would need most of its own for ends of pages none.
void give_tiers(CompiledPlan&, const std::vector<StateCandidate>&, const std::vector<bool>& taken,
                size_t links);

}  // namespace cairn::engine
