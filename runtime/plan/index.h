// What every part of the planner looks up in a problem: who makes and who reads a value. Built once, O(size).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/plan/problem.h"

namespace cairn::plan {

// Rows of ints of different lengths, stored one after the other.
class Rows {
 public:
  std::span<const int32_t> operator[](int64_t row) const {
    return {items_.data() + begin_[row], static_cast<size_t>(begin_[row + 1] - begin_[row])};
  }
  void push(int32_t item) { items_.push_back(item); }
  void end_row() { begin_.push_back(static_cast<int64_t>(items_.size())); }

 private:
  std::vector<int64_t> begin_ = {0};
  std::vector<int32_t> items_;
};

struct Index {
  explicit Index(const Problem&);  // the problem must pass check()

  std::vector<int32_t> maker;           // per value: the op that makes it, or -1
  Rows readers;                         // per value: reading ops, ascending, each once
  Rows inputs;                          // per op: inputs that are not persistent, each once
  Rows outputs;                         // per op: outputs that are not persistent
  std::vector<int32_t> last_forward;    // per value: last forward op that makes or reads it, -1 if none
  std::vector<int32_t> first_backward;  // per value: first backward reader, -1 if none
  std::vector<int32_t> scope;  // per op: the innermost region around it with an explicit policy, or -1
  int64_t persistent_bytes = 0;
  double forward_seconds = 0, total_seconds = 0;

  // Made in forward and read by backward: these are the values that the planner decides about.
  bool saved(int32_t v, int32_t backward_begin) const {
    return maker[v] >= 0 && maker[v] < backward_begin && first_backward[v] >= 0;
  }
};

// No plan's arena is smaller than the persistent values and the values of the largest op together.
int64_t least_bytes(const Problem&, const Index&);

}  // namespace cairn::plan
