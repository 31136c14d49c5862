// The least seconds of ops recomputed, at one program point of a plan and one price per byte: a minimum cut.
// The program and the proof that every flow is a bound are in README.md.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/bound/flow.h"
#include "runtime/plan/bound/knapsack.h"
#include "runtime/plan/index.h"

namespace cairn::plan {

// An answer at one price. With any number B of bytes on the device, plans recompute at least flow - price * B
// seconds. `bytes` and `seconds` are those of the minimum cut.
struct Cut {
  double price = 0;    // per byte, in seconds
  double flow = 0;     // value of the maximum flow, in seconds
  double bytes = 0;    // kept on the device
  double seconds = 0;  // seconds of recomputed ops
  double below(double available) const { return flow - price * available; }
};

class Closure {
 public:
  // The program point is the first start of op `at`. O(ops before it and their uses).
  Closure(const Problem&, const Index&, int32_t at);

  Cut cut(double price);  // O(size) for the greedy part; few and short augmenting phases on layered graphs

  // The ops fall into parts that are recomputed independently of each other. Returns one option set per part, which
  // covers all sets of the part's ops; nothing if a part is too large for that.
  std::vector<OptionSet> option_sets() const;

  // Narrows the program to plans that do, or do not, run an op again after the program point. The op is a
  // number below ops(), here and in remade(): only ops that may matter have one.
  enum class Decision : uint8_t { kFree, kRemade, kStays };
  void fix(int32_t op, Decision decision) { decisions_[op] = decision; }
  int32_t ops() const { return ops_; }
  int32_t op(int32_t number) const { return chosen_[number]; }     // its index in the problem
  bool remade(int32_t op) const;                                   // whether the last cut() recomputes the op
  double seconds(int32_t op) const { return nodes_[op].seconds; }  // infinite if it may not run again

  int64_t busy_bytes() const { return busy_bytes_; }        // inputs and outputs of op `at`
  int64_t largest_bytes() const { return largest_bytes_; }  // largest value that may have been offloaded
  double dearest() const { return dearest_; }               // highest seconds per byte of a single op
  double total_seconds() const { return total_seconds_; }   // of the ops that may run again
  int64_t size() const { return static_cast<int64_t>(flow_.arcs().size() + nodes_.size()); }
  int64_t work() const {
    return work_ + flow_.work();
  }  // arcs looked at by all cut() so far: the cost in time

 private:
  // Nodes are the ops that may have to run again, latest first, then the values that are only inputs of such ops.
  struct Node {
    double bytes = 0;    // op: outputs read after the program point; value: its size
    double seconds = 0;  // op: cost, infinite if it may not run again
  };

  double limit(int32_t op) const;                                // seconds that the arc to the sink can take
  OptionSet option_set(const std::vector<int32_t>& part) const;  // part: node numbers
  void push_down(double price);

  std::vector<int32_t> chosen_;      // per op of the program: its index in the problem
  std::vector<Decision> decisions_;  // per op
  std::vector<Node> nodes_;
  Flow flow_;
  int32_t ops_ = 0, values_ = 0;
  int64_t busy_bytes_ = 0, largest_bytes_ = 0, work_ = 0;
  double dearest_ = 0, total_seconds_ = 0;
};

}  // namespace cairn::plan
