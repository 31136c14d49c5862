// A model's forward ops, taken in order, and the backward ops that follow from them: how the benchmarks' problems are
// written.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/problem.h"

namespace cairn::bench {

using plan::Op;
using plan::Problem;

inline constexpr int64_t kMiB = int64_t{1} << 20;

// Seconds on a device of 600 TFLOP/s and 3.7 TB/s with 2 us per launch.
inline double roofline(double flops, double bytes_moved) {
  return 2e-6 + std::max(flops / 600e12, bytes_moved / 3.7e12);
}

// What a forward op's backward reads beside the gradient.
struct Reads {
  bool input = false, output = false, extra = false;
  bool only_passes_on = false;  // a sum: its backward is no op
};

struct Forward {
  std::string name;
  std::vector<int32_t> inputs;
  int64_t bytes = 0;   // of its output
  int64_t extra = 0;   // of a second output (statistics)
  int64_t weight = 0;  // of its parameters
  int64_t workspace = 0, back_workspace = 0;
  double seconds = 0, back_seconds = 0;
  Reads reads;
  bool recomputable = true;
  int32_t region = -1;
};

// Takes forward ops in order, and derives the backward part.
class Tape {
 public:
  int32_t value(const std::string& name, int64_t bytes, bool persistent = false) {
    p_.values.push_back({name, bytes, persistent});
    return static_cast<int32_t>(p_.values.size()) - 1;
  }
  int32_t region(const std::string& name) {
    p_.regions.push_back({name, -1, Policy::kPlannerDecides, -1});
    return static_cast<int32_t>(p_.regions.size()) - 1;
  }

  int32_t add(Forward f) {  // the output
    const int32_t output = value(f.name, f.bytes);
    Node node{std::move(f), output, -1, -1};
    Op op{node.f.name,   node.f.seconds,      node.f.workspace, node.f.inputs,
          {node.output}, node.f.recomputable, node.f.region};
    if (node.f.extra > 0) op.outputs.push_back(node.extra = value(node.f.name + ".extra", node.f.extra));
    if (node.f.weight > 0) {
      op.inputs.push_back(node.weight = value(node.f.name + ".weight", node.f.weight, true));
      weights_ += node.f.weight;
    }
    p_.ops.push_back(std::move(op));
    nodes_.push_back(std::move(node));
    return nodes_.back().output;
  }

  int64_t weights() const { return weights_; }

  Problem finish() {
    p_.backward_begin = static_cast<int32_t>(p_.ops.size());
    std::map<int32_t, int32_t> gradient;  // of a value: what holds its sum so far
    for (size_t n = nodes_.size(); n-- > 0;) backward(nodes_[n], gradient);
    check(p_);
    return std::move(p_);
  }

 private:
  struct Node {
    Forward f;
    int32_t output, extra, weight;
  };

  void backward(const Node& node, std::map<int32_t, int32_t>& gradient) {
    const Forward& f = node.f;
    const auto given = gradient.find(node.output);
    if (given == gradient.end() && f.reads.only_passes_on) return;
    Op op{f.name + ".backward", f.back_seconds, f.back_workspace, {}, {}, true, f.region};
    const auto reads = [&](int32_t v) {
      if (std::find(op.inputs.begin(), op.inputs.end(), v) == op.inputs.end()) op.inputs.push_back(v);
    };
    if (given != gradient.end()) reads(given->second);
    for (int32_t v : f.inputs) {
      if (p_.values[v].persistent) continue;
      if (f.reads.input) reads(v);
      const auto sum = gradient.find(v);
      if (f.reads.only_passes_on && sum == gradient.end()) {
        gradient[v] = given->second;
        continue;
      }
      if (sum != gradient.end()) reads(sum->second);
      op.outputs.push_back(value(p_.values[v].name + ".grad." + f.name, p_.values[v].bytes));
      gradient[v] = op.outputs.back();
    }
    if (f.reads.output) reads(node.output);
    if (f.reads.extra && node.extra >= 0) reads(node.extra);
    if (node.weight >= 0) {
      reads(node.weight);
      op.outputs.push_back(value(f.name + ".weight.grad", f.weight, true));
    }
    if (!op.outputs.empty()) p_.ops.push_back(std::move(op));
  }

  Problem p_;
  std::vector<Node> nodes_;
  int64_t weights_ = 0;
};

}  // namespace cairn::bench
