// Which numbers an integer input may hold, worked out from the ops that read it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace cairn::graph {

struct Vocabulary {
  std::string op;    // that reads the input
  int64_t size = 0;  // numbers 0..size-1
  bool ignores = false;
  int64_t ignore = 0;  // and this one, for losses

  bool allows(int64_t number) const {
    return (number >= 0 && number < size) || (ignores && number == ignore);
  }
};

using Vocabularies = std::map<ValueId, std::vector<Vocabulary>>;  // by input

// Follows inputs into embeddings and losses, also through reshape and transpose.
Vocabularies vocabularies(const Graph& graph);

// kInvalidArgument naming the position and the number of the first i32 that an op does not allow.
void check_vocabulary(const Value& input, const std::vector<Vocabulary>& rules, const void* data);

}  // namespace cairn::graph
