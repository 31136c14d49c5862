#include "runtime/plan/bound/flow.h"

#include <algorithm>
#include <limits>

namespace cairn::plan {
namespace {

constexpr int32_t kUnreached = std::numeric_limits<int32_t>::max();
constexpr int kMostPhases = 60;

}  // namespace

Flow::Flow(int32_t sinks, size_t nodes, const std::vector<std::pair<int32_t, int32_t>>& arcs)
    : sinks_(sinks) {
  std::vector<int32_t> fill(nodes + 1, 0);
  for (const auto& [from, to] : arcs) ++fill[from + 1], ++fill[to + 1];
  for (size_t n = 1; n <= nodes; ++n) fill[n] += fill[n - 1];
  first_arc_ = fill;
  arcs_.resize(2 * arcs.size());
  for (const auto& [from, to] : arcs) {
    const int32_t there = fill[from]++, back = fill[to]++;
    arcs_[there] = {to, back, true};
    arcs_[back] = {from, there, false};
  }
  room.resize(arcs_.size());
  excess.resize(static_cast<size_t>(sinks));
  sink_room.resize(static_cast<size_t>(sinks));
  distance_.resize(nodes);
  next_arc_.resize(nodes);
}

bool Flow::reaches(int32_t node) const { return distance_[node] != kUnreached; }

void Flow::augment() {
  for (int phase = 0; label() && phase < kMostPhases; ++phase) {
    std::copy_n(first_arc_.begin(), next_arc_.size(), next_arc_.begin());
    for (int32_t n = 0; n < sinks_; ++n)
      if (excess[n] > tolerance && distance_[n] != kUnreached) augment_from(n);
  }
}

// Labels each node with its distance to a sink with room, over arcs with room. True if some excess can still reach
// one.
bool Flow::label() {
  std::fill(distance_.begin(), distance_.end(), kUnreached);
  queue_.clear();
  for (int32_t n = 0; n < sinks_; ++n)
    if (sink_room[n] > tolerance) {
      distance_[n] = 0;
      queue_.push_back(n);
    }
  bool found = false;
  for (size_t head = 0; head < queue_.size(); ++head) {
    const int32_t n = queue_[head];
    found |= n < sinks_ && excess[n] > tolerance;
    for (int32_t a = begin(n); a < end(n); ++a) {
      const int32_t from = arcs_[a].to;
      if (distance_[from] != kUnreached || !(room[arcs_[a].back] > tolerance)) continue;
      distance_[from] = distance_[n] + 1;
      queue_.push_back(from);
    }
  }
  work_ += static_cast<int64_t>(queue_.size() + arcs_.size());
  return found;
}

// Pushes the node's excess along shortest paths; each arc is given up at most once per phase.
void Flow::augment_from(int32_t node) {
  path_.clear();
  int32_t n = node;
  while (excess[node] > tolerance) {
    if (distance_[n] == 0) {
      double amount = std::min(excess[node], sink_room[n]);
      for (const int32_t a : path_) amount = std::min(amount, room[a]);
      sink_room[n] -= amount;
      excess[node] -= amount;
      size_t keep = path_.size();
      for (size_t i = path_.size(); i-- > 0;) {
        room[path_[i]] -= amount;
        room[arcs_[path_[i]].back] += amount;
        if (!(room[path_[i]] > tolerance)) keep = i;
      }
      work_ += static_cast<int64_t>(path_.size());
      if (sink_room[n] > tolerance && keep == path_.size()) return;  // all of the excess has been pushed
      if (!(sink_room[n] > tolerance)) distance_[n] = kUnreached;
      if (keep < path_.size()) {
        n = arcs_[arcs_[path_[keep]].back].to;
        path_.resize(keep);
      }
      continue;
    }
    bool stepped = false;
    if (distance_[n] != kUnreached)
      for (int32_t& a = next_arc_[n]; a < end(n); ++a) {
        ++work_;
        const int32_t to = arcs_[a].to;
        if (!(room[a] > tolerance) || distance_[to] == kUnreached || distance_[to] + 1 != distance_[n])
          continue;
        path_.push_back(a);
        n = to;
        stepped = true;
        break;
      }
    if (stepped) continue;
    distance_[n] = kUnreached;
    if (path_.empty()) return;
    n = arcs_[arcs_[path_.back()].back].to;
    path_.pop_back();
  }
}

}  // namespace cairn::plan
