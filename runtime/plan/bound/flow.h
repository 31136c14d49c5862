// A largest flow from nodes with an excess to sinks with room, by Dinic's phases: shortest augmenting paths. What closures and
// stretches cut. Whoever makes it sets rooms and excesses first, be it by a greedy flow of its own.
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
  // Nodes below `sinks` may have an excess, and be sinks. Each arc (from, to) stands beside its reverse, rows by node.
  Flow(int32_t sinks, size_t nodes, const std::vector<std::pair<int32_t, int32_t>>& arcs);

  // Sends excesses on as long as that goes, for some phases at most: a flow that is not yet the largest is still a bound.
  void augment();
  // Whether the last augment() found a way from the node to a sink with room.
  bool reaches(int32_t node) const;

  int32_t begin(int32_t node) const { return first_arc_[node]; }
  int32_t end(int32_t node) const { return first_arc_[node + 1]; }
  const std::vector<Arc>& arcs() const { return arcs_; }
  int64_t work() const { return work_; }  // arcs and nodes looked at so far

  std::vector<double> room;               // per arc
  std::vector<double> excess, sink_room;  // per node below `sinks`
  double tolerance = 0;                   // less is nothing

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
