// The least seconds of any plan of a small problem without links, by Dijkstra's algorithm over (next op to
// run for the first time, set of values on the device). Offsets are ignored: every real plan is one of its
// paths.
#pragma once
#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "runtime/plan/index.h"

namespace cairn::plan {

// Infinite if nothing fits. Takes up to 2^values * ops states: for a dozen values.
inline double optimum_seconds(const Problem& p, const Index& index, int64_t budget_bytes) {
  std::vector<int32_t> bit(p.values.size(), -1);
  std::vector<int64_t> bytes;
  for (size_t v = 0; v < p.values.size(); ++v)
    if (!p.values[v].persistent && index.maker[v] >= 0) {
      bit[v] = static_cast<int32_t>(bytes.size());
      bytes.push_back(p.values[v].bytes);
    }
  const size_t sets = size_t{1} << bytes.size(), ops = p.ops.size();
  std::vector<int64_t> total(sets, 0);
  for (size_t set = 1; set < sets; ++set) {
    size_t low = 0;
    while (!(set >> low & 1)) ++low;
    total[set] = total[set & (set - 1)] + bytes[low];
  }
  std::vector<size_t> in(ops, 0), out(ops, 0);
  for (size_t i = 0; i < ops; ++i) {
    for (int32_t v : index.inputs[static_cast<int64_t>(i)]) in[i] |= size_t{1} << bit[v];
    for (int32_t v : index.outputs[static_cast<int64_t>(i)]) out[i] |= size_t{1} << bit[v];
  }
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> best(sets * (ops + 1), kNever);
  using State = std::pair<double, size_t>;  // seconds, next * sets + set
  std::priority_queue<State, std::vector<State>, std::greater<>> open;
  const auto reach = [&](size_t next, size_t set, double seconds) {
    double& known = best[next * sets + set];
    if (!(seconds < known)) return;
    known = seconds;
    open.push({seconds, next * sets + set});
  };
  reach(0, 0, 0);
  while (!open.empty()) {
    const auto [seconds, state] = open.top();
    open.pop();
    if (seconds > best[state]) continue;
    const size_t next = state / sets, set = state % sets;
    if (next == ops) return seconds;
    for (size_t v = 0; v < bytes.size(); ++v)
      if (set >> v & 1) reach(next, set & ~(size_t{1} << v), seconds);
    for (size_t i = 0; i <= next; ++i) {
      if ((set & in[i]) != in[i] || (i < next && !p.ops[i].recomputable)) continue;
      if (index.persistent_bytes + p.ops[i].workspace_bytes + total[set | out[i]] > budget_bytes) continue;
      reach(next + (i == next), set | out[i], seconds + p.ops[i].seconds);
    }
  }
  return kNever;
}

// The most any single op needs at once: no plan fits in less.
inline int64_t min_bytes(const Problem& p, const Index& index) {
  int64_t least = index.persistent_bytes;
  for (size_t i = 0; i < p.ops.size(); ++i) {
    std::vector<int32_t> held(index.inputs[static_cast<int64_t>(i)].begin(),
                              index.inputs[static_cast<int64_t>(i)].end());
    for (int32_t v : index.outputs[static_cast<int64_t>(i)]) held.push_back(v);
    std::sort(held.begin(), held.end());
    held.erase(std::unique(held.begin(), held.end()), held.end());
    int64_t bytes = index.persistent_bytes + p.ops[i].workspace_bytes;
    for (int32_t v : held) bytes += p.values[v].bytes;
    least = std::max(least, bytes);
  }
  return least;
}

// The bytes of a plan that keeps every value until its last use, layout aside.
inline int64_t max_bytes(const Problem& p, const Index& index) {
  int64_t most = 0;
  for (size_t i = 0; i < p.ops.size(); ++i) {
    int64_t bytes = index.persistent_bytes + p.ops[i].workspace_bytes;
    for (size_t v = 0; v < p.values.size(); ++v) {
      const auto readers = index.readers[static_cast<int64_t>(v)];
      const auto at = static_cast<int32_t>(i);
      if (p.values[v].persistent || index.maker[v] < 0 || index.maker[v] > at) continue;
      if (index.maker[v] == at || (!readers.empty() && readers.back() >= at)) bytes += p.values[v].bytes;
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace cairn::plan
