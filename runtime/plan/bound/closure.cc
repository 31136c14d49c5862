#include "runtime/plan/bound/closure.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cairn::plan {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int32_t kUnreached = std::numeric_limits<int32_t>::max();
constexpr int kPhases = 60;         // a flow that is not yet the largest is still a bound
constexpr double kSumming = 1e-12;  // relative error of a flow's sum of up to 1e6 terms, generously

}  // namespace

Closure::Closure(const Problem& p, const Index& index, int32_t at) {
  enum : uint8_t { kUnused, kBusy, kHelps };
  std::vector<uint8_t> role(p.values.size(), kUnused);
  const auto occupy = [&](int32_t v) {
    if (role[v] == kBusy) return;
    role[v] = kBusy;
    busy_bytes_ += p.values[v].bytes;
  };
  for (int32_t v : index.inputs[at]) occupy(v);
  for (int32_t v : index.outputs[at]) occupy(v);

  const auto needed = [&](int32_t v) {
    const auto readers = index.readers[v];
    return role[v] != kBusy && !readers.empty() && readers.back() > at;
  };
  // From the last op back: an op matters if its outputs are read after the program point or help an op that
  // matters.
  std::vector<int32_t> helpers, slot(p.values.size(), -1);
  int64_t edges = 0;
  chosen_.reserve(static_cast<size_t>(at));
  nodes_.reserve(2 * static_cast<size_t>(at) + 1);
  for (int32_t i = at - 1; i >= 0; --i) {
    const Op& op = p.ops[i];
    int64_t bytes = 0;
    bool matters = false;
    for (int32_t v : index.outputs[i]) {
      if (role[v] == kBusy) continue;
      largest_bytes_ = std::max(largest_bytes_, p.values[v].bytes);
      if (needed(v)) bytes += p.values[v].bytes;
      matters |= role[v] == kHelps;
    }
    if (bytes == 0 && !matters) continue;
    chosen_.push_back(i);
    nodes_.push_back({static_cast<double>(bytes), op.recomputable ? op.seconds : kInfinite, 0});
    if (!op.recomputable) continue;  // it never runs again, so it needs no inputs
    total_seconds_ += op.seconds;
    if (bytes > 0) dearest_ = std::max(dearest_, op.seconds / static_cast<double>(bytes));
    for (int32_t v : index.inputs[i]) {
      if (role[v] == kBusy || needed(v) || p.values[v].bytes == 0 || index.maker[v] < 0) continue;
      ++edges;
      if (role[v] == kHelps) continue;
      role[v] = kHelps;
      slot[v] = static_cast<int32_t>(helpers.size());
      helpers.push_back(v);
    }
  }
  tolerance_ = 1e-14 * total_seconds_;
  ops_ = static_cast<int32_t>(nodes_.size());
  values_ = static_cast<int32_t>(helpers.size());
  for (int32_t v : helpers) nodes_.push_back({static_cast<double>(p.values[v].bytes), 0, 0});
  nodes_.push_back({});

  // Arcs op -> helping input and helping value -> its maker, each beside its reverse; rows by node.
  std::vector<std::pair<int32_t, int32_t>> forward;
  forward.reserve(static_cast<size_t>(edges) + helpers.size());
  for (int32_t k = 0; k < ops_; ++k)
    if (nodes_[k].seconds < kInfinite)
      for (int32_t v : index.inputs[chosen_[k]])
        if (slot[v] >= 0) forward.push_back({k, ops_ + slot[v]});
  for (int32_t k = 0; k < ops_; ++k)
    for (int32_t v : index.outputs[chosen_[k]])
      if (slot[v] >= 0) forward.push_back({ops_ + slot[v], k});
  std::vector<int32_t> fill(nodes_.size() + 1, 0);
  for (const auto& [a, b] : forward) ++fill[a + 1], ++fill[b + 1];
  for (size_t n = 1; n < fill.size(); ++n) fill[n] += fill[n - 1];
  for (size_t n = 0; n < nodes_.size(); ++n) nodes_[n].first_arc = fill[n];
  arcs_.resize(2 * forward.size());
  for (const auto& [a, b] : forward) {
    const int32_t there = fill[a]++, back = fill[b]++;
    arcs_[there] = {b, back};
    arcs_[back] = {a, -1 - there};  // negative: this arc is a reverse
  }
  room_.resize(arcs_.size());
  decisions_.resize(static_cast<size_t>(ops_), Decision::kFree);
  excess_.resize(static_cast<size_t>(ops_));
  sink_room_.resize(static_cast<size_t>(ops_));
  distance_.resize(nodes_.size());
  next_arc_.resize(nodes_.size());
}

namespace {
int32_t partner(int32_t back) { return back >= 0 ? back : -1 - back; }
}  // namespace

double Closure::limit(int32_t op) const {
  return decisions_[op] == Decision::kStays ? kInfinite : nodes_[op].seconds;
}

bool Closure::remade(int32_t op) const { return distance_[op] == kUnreached; }

// The greedy flow, readers before makers: each op takes what it can and passes the rest to the makers of its
// inputs, as far as the inputs' prices allow. What it can neither take nor pass stays as its excess.
void Closure::push_down(double price) {
  for (size_t a = 0; a < arcs_.size(); ++a) room_[a] = arcs_[a].back >= 0 ? kInfinite : 0;
  for (int32_t n = ops_; n < ops_ + values_; ++n)
    for (int32_t a = nodes_[n].first_arc; a < end_arc(n); ++a)
      if (arcs_[a].back >= 0) room_[a] = price * nodes_[n].bytes;
  for (int32_t k = 0; k < ops_; ++k) {
    // One that surely runs again asks for its inputs at any price.
    double supply = decisions_[k] == Decision::kRemade ? kInfinite : price * nodes_[k].bytes;
    for (int32_t a = nodes_[k].first_arc; a < end_arc(k); ++a)
      if (arcs_[a].back < 0) supply += room_[a];  // what came in from outputs
    const double taken = std::min(supply, limit(k));
    sink_room_[k] = limit(k) - taken;
    supply -= taken;
    for (int32_t a = nodes_[k].first_arc; a < end_arc(k) && supply > 0; ++a) {
      if (arcs_[a].back < 0) continue;
      const int32_t value = arcs_[a].to;
      for (int32_t b = nodes_[value].first_arc; b < end_arc(value); ++b) {
        if (arcs_[b].back < 0) continue;  // the one arc to the maker
        const double pushed = std::min(supply, room_[b]);
        room_[arcs_[a].back] += pushed;
        room_[b] -= pushed;
        room_[arcs_[b].back] += pushed;
        supply -= pushed;
      }
    }
    excess_[k] = supply;
  }
}

// Steps to a sink with room, over arcs with room. True if some excess can still get there.
bool Closure::label() {
  std::fill(distance_.begin(), distance_.end(), kUnreached);
  queue_.clear();
  for (int32_t k = 0; k < ops_; ++k)
    if (sink_room_[k] > tolerance_) {
      distance_[k] = 0;
      queue_.push_back(k);
    }
  bool found = false;
  for (size_t head = 0; head < queue_.size(); ++head) {
    const int32_t n = queue_[head];
    found |= n < ops_ && excess_[n] > tolerance_;
    for (int32_t a = nodes_[n].first_arc; a < end_arc(n); ++a) {
      const int32_t from = arcs_[a].to;
      if (distance_[from] != kUnreached || !(room_[partner(arcs_[a].back)] > tolerance_)) continue;
      distance_[from] = distance_[n] + 1;
      queue_.push_back(from);
    }
  }
  work_ += static_cast<int64_t>(queue_.size() + arcs_.size());
  return found;
}

// Sends the op's excess along shortest paths, each arc given up at most once per phase.
void Closure::augment(int32_t from) {
  path_.clear();
  int32_t n = from;
  while (excess_[from] > tolerance_) {
    if (distance_[n] == 0) {
      double amount = std::min(excess_[from], sink_room_[n]);
      for (int32_t a : path_) amount = std::min(amount, room_[a]);
      sink_room_[n] -= amount;
      excess_[from] -= amount;
      size_t keep = path_.size();
      for (size_t i = path_.size(); i-- > 0;) {
        room_[path_[i]] -= amount;
        room_[partner(arcs_[path_[i]].back)] += amount;
        if (!(room_[path_[i]] > tolerance_)) keep = i;
      }
      work_ += static_cast<int64_t>(path_.size());
      if (sink_room_[n] > tolerance_ && keep == path_.size()) return;  // the excess is gone
      if (!(sink_room_[n] > tolerance_)) distance_[n] = kUnreached;
      if (keep < path_.size()) {
        n = arcs_[partner(arcs_[path_[keep]].back)].to;
        path_.resize(keep);
      }
      continue;
    }
    bool stepped = false;
    if (distance_[n] != kUnreached)
      for (int32_t& a = next_arc_[n]; a < end_arc(n); ++a) {
        ++work_;
        const int32_t to = arcs_[a].to;
        if (!(room_[a] > tolerance_) || distance_[to] == kUnreached || distance_[to] + 1 != distance_[n])
          continue;
        path_.push_back(a);
        n = to;
        stepped = true;
        break;
      }
    if (stepped) continue;
    distance_[n] = kUnreached;
    if (path_.empty()) return;
    n = arcs_[partner(arcs_[path_.back()].back)].to;
    path_.pop_back();
  }
}

Cut Closure::cut(double price) {
  push_down(price);
  work_ += static_cast<int64_t>(arcs_.size()) + ops_;
  for (int phase = 0; label() && phase < kPhases; ++phase) {
    for (size_t n = 0; n < nodes_.size(); ++n) next_arc_[n] = nodes_[n].first_arc;
    for (int32_t k = 0; k < ops_; ++k)
      if (excess_[k] > tolerance_ && distance_[k] != kUnreached) augment(k);
  }
  // Ops that cannot reach a sink with room are made again; the values they need from other ops stay.
  Cut result{price, 0, 0, 0};
  for (int32_t k = 0; k < ops_; ++k) {
    // An op without limit takes what it is sent: its own bytes' price and its outputs' pushes.
    if (limit(k) == kInfinite) {
      result.flow += price * nodes_[k].bytes;
      for (int32_t a = nodes_[k].first_arc; a < end_arc(k); ++a)
        if (arcs_[a].back < 0) result.flow += room_[a];
    } else {
      result.flow += nodes_[k].seconds - sink_room_[k];
    }
    if (remade(k))
      result.seconds += nodes_[k].seconds;
    else
      result.bytes += nodes_[k].bytes;
  }
  for (int32_t n = ops_; n < ops_ + values_; ++n)
    for (int32_t a = nodes_[n].first_arc; a < end_arc(n); ++a)
      if (arcs_[a].back >= 0 && distance_[n] == kUnreached && distance_[arcs_[a].to] != kUnreached)
        result.bytes += nodes_[n].bytes;
  result.flow *= 1 - kSumming;
  return result;
}

}  // namespace cairn::plan
