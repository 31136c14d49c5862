#include "runtime/plan/bound/closure.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cairn::plan {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
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
  // From the last op back: an op matters if its outputs are read after the program point, or are inputs of an op that
  // matters.
  std::vector<int32_t> helpers, slot(p.values.size(), -1);
  int64_t edges = 0;
  chosen_.reserve(static_cast<size_t>(at));
  nodes_.reserve(2 * static_cast<size_t>(at));
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
    nodes_.push_back({static_cast<double>(bytes), op.recomputable ? op.seconds : kInfinite});
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
  ops_ = static_cast<int32_t>(nodes_.size());
  values_ = static_cast<int32_t>(helpers.size());
  for (int32_t v : helpers) nodes_.push_back({static_cast<double>(p.values[v].bytes), 0});

  // Arcs op -> input and value -> its maker, each stored next to its reverse; sorted by node.
  std::vector<std::pair<int32_t, int32_t>> forward;
  forward.reserve(static_cast<size_t>(edges) + helpers.size());
  for (int32_t k = 0; k < ops_; ++k)
    if (nodes_[k].seconds < kInfinite)
      for (int32_t v : index.inputs[chosen_[k]])
        if (slot[v] >= 0) forward.push_back({k, ops_ + slot[v]});
  for (int32_t k = 0; k < ops_; ++k)
    for (int32_t v : index.outputs[chosen_[k]])
      if (slot[v] >= 0) forward.push_back({ops_ + slot[v], k});
  flow_ = Flow(ops_, nodes_.size(), forward);
  flow_.tolerance = 1e-14 * total_seconds_;
  decisions_.resize(static_cast<size_t>(ops_), Decision::kFree);
}

double Closure::limit(int32_t op) const {
  return decisions_[op] == Decision::kStays ? kInfinite : nodes_[op].seconds;
}

bool Closure::remade(int32_t op) const { return !flow_.reaches(op); }

// The greedy flow, readers before makers. Each op takes what it can and passes the rest to the makers of its inputs,
// as far as the inputs' prices allow. What it can neither take nor pass remains its excess.
void Closure::push_down(double price) {
  const std::vector<Flow::Arc>& arcs = flow_.arcs();
  for (size_t a = 0; a < arcs.size(); ++a) flow_.room[a] = arcs[a].forward ? kInfinite : 0;
  for (int32_t n = ops_; n < ops_ + values_; ++n)
    for (int32_t a = flow_.begin(n); a < flow_.end(n); ++a)
      if (arcs[a].forward) flow_.room[a] = price * nodes_[n].bytes;
  for (int32_t k = 0; k < ops_; ++k) {
    // An op that is fixed to run again requires its inputs at any price.
    double supply = decisions_[k] == Decision::kRemade ? kInfinite : price * nodes_[k].bytes;
    for (int32_t a = flow_.begin(k); a < flow_.end(k); ++a)
      if (!arcs[a].forward) supply += flow_.room[a];  // flow from the op's outputs
    const double taken = std::min(supply, limit(k));
    flow_.sink_room[k] = limit(k) - taken;
    supply -= taken;
    for (int32_t a = flow_.begin(k); a < flow_.end(k) && supply > 0; ++a) {
      if (!arcs[a].forward) continue;
      const int32_t value = arcs[a].to;
      for (int32_t b = flow_.begin(value); b < flow_.end(value); ++b) {
        if (!arcs[b].forward) continue;  // only the arc to the maker is forward
        const double pushed = std::min(supply, flow_.room[b]);
        flow_.room[arcs[a].back] += pushed;
        flow_.room[b] -= pushed;
        flow_.room[arcs[b].back] += pushed;
        supply -= pushed;
      }
    }
    flow_.excess[k] = supply;
  }
}

Cut Closure::cut(double price) {
  const std::vector<Flow::Arc>& arcs = flow_.arcs();
  push_down(price);
  work_ += static_cast<int64_t>(arcs.size()) + ops_;
  flow_.augment();
  // Ops that cannot reach a sink with room are recomputed. The values they need from other ops are kept on the
  // device.
  Cut result{price, 0, 0, 0};
  for (int32_t k = 0; k < ops_; ++k) {
    // An op without limit takes all that is pushed to it: the price of its own bytes and what its outputs push.
    if (limit(k) == kInfinite) {
      result.flow += price * nodes_[k].bytes;
      for (int32_t a = flow_.begin(k); a < flow_.end(k); ++a)
        if (!arcs[a].forward) result.flow += flow_.room[a];
    } else {
      result.flow += nodes_[k].seconds - flow_.sink_room[k];
    }
    if (remade(k))
      result.seconds += nodes_[k].seconds;
    else
      result.bytes += nodes_[k].bytes;
  }
  for (int32_t n = ops_; n < ops_ + values_; ++n)
    for (int32_t a = flow_.begin(n); a < flow_.end(n); ++a)
      if (arcs[a].forward && !flow_.reaches(n) && flow_.reaches(arcs[a].to)) result.bytes += nodes_[n].bytes;
  result.flow *= 1 - kSumming;
  return result;
}

}  // namespace cairn::plan
