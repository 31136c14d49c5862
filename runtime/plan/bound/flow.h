// The maximum flow from nodes with an excess to sinks with room, by Dinic's phases of shortest augmenting paths.
// Closures and stretches find their minimum cuts by it. The caller sets rooms and excesses first, for example by a
// greedy flow.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace cairn::plan {

class Flow {
 public:
  struct Arc {
    int32_t to, back;  // node, index of the reverse arc
    bool forward;
  };
  Flow() = default;
  // Nodes below `sinks` may have an excess, and may be sinks. arcs: (from, to), sorted by their node; each is stored
  // next to its reverse.
  Flow(int32_t sinks, size_t nodes, const std::vector<std::pair<int32_t, int32_t>>& arcs);

  // Pushes excesses along augmenting paths, for a limited number of phases. A flow that is not yet the maximum still
  // gives a bound.
  void augment();
  // Whether the last augment() found a way from the node to a sink with room.
  bool reaches(int32_t node) const;

  int32_t begin(int32_t node) const { return first_arc_[node]; }
  int32_t end(int32_t node) const { return first_arc_[node + 1]; }
  const std::vector<Arc>& arcs() const { return arcs_; }
  int64_t work() const { return work_; }  // arcs and nodes looked at so far

  std::vector<double> room;               // per arc: flow that it can still take
  std::vector<double> excess, sink_room;  // per node below `sinks`: flow to push, flow it can still take
  double tolerance = 0;                   // smaller amounts count as zero

 private:
  bool label();
  void augment_from(int32_t node);

  int32_t sinks_ = 0;
  std::vector<int32_t> first_arc_;
  std::vector<Arc> arcs_;
  std::vector<int32_t> distance_, next_arc_, queue_, path_;
  int64_t work_ = 0;
};

}  // namespace cairn::plan
