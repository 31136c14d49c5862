// Values of the effective batch: what the op `effective` makes, and what is computed of that. A graph that has them is in
// parts, which a step runs apart (Part).
#pragma once
#include "runtime/graph/graph.h"

namespace cairn::graph {

// Of a graph's ops, which compute values of the effective batch. Without such values: none.
struct Sides {
  int64_t micro_steps = 1;      // of an effective batch
  std::vector<bool> effective;  // by op; `effective` itself is of a micro-batch

  bool apart() const { return micro_steps > 1; }
};

// What only ops of the effective batch use is of it, inputs as well. kInvalidArgument: an op uses values of both kinds, the loss
// is of one micro-batch, ops count different micro-batches, the graph has no loss. kUnsupported: what is computed twice has
// effects.
Sides find_sides(const Graph& graph, ValueId loss, ValueId weight);

}  // namespace cairn::graph
