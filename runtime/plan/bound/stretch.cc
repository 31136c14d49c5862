#include "runtime/plan/bound/stretch.h"

#include <algorithm>

namespace cairn::plan {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr int32_t kNotReached = std::numeric_limits<int32_t>::max();
constexpr int kMostPhases = 60;      // a flow that is not yet the largest is still a bound
constexpr double kSumError = 1e-12;  // relative error of a flow's sum of up to 1e6 terms, generously

}  // namespace

Stretch::Stretch(const Problem& p, const Index& index, int32_t at, int32_t next)
    : index_(&index), at_(at), values_(p.values.size()), to_maker_(p.values.size(), -1) {
  const auto ops = static_cast<int32_t>(p.ops.size());
  for (size_t v = 0; v < p.values.size(); ++v)
    values_[v].made = !p.values[v].persistent && index.maker[v] >= 0 && index.maker[v] < at;
  const auto occupy = [&](int32_t v) {
    if (!values_[v].busy) busy_bytes_ += p.values[v].bytes;
    values_[v].busy = true;
  };
  for (const int32_t v : index.inputs[at]) occupy(v);
  for (const int32_t v : index.outputs[at]) occupy(v);
  for (int32_t op = at; op < next; ++op)
    for (const int32_t v : index.inputs[op]) values_[v].read = true;
  // Op `next` finds on the device what it uses.
  if (next < ops) {
    for (const int32_t v : index.inputs[next]) values_[v].read = true;
    for (const int32_t v : index.outputs[next]) values_[v].read = true;
  }
  double all = 0;
  for (int32_t op = 0; op < at; ++op) {
    seconds_.push_back(p.ops[op].recomputable ? p.ops[op].seconds : kNoLimit);
    if (p.ops[op].recomputable) all += p.ops[op].seconds;
  }
  tolerance_ = 1e-14 * all;
  // Arcs op -> input and value -> its maker, each beside its reverse; rows by node.
  std::vector<std::pair<int32_t, int32_t>> forward;
  const auto open = [&](int32_t v) { return values_[v].made && !values_[v].busy; };
  for (int32_t op = 0; op < at; ++op) {
    if (seconds_[op] < kNoLimit)
      for (const int32_t v : index.inputs[op])
        if (open(v)) forward.emplace_back(op, at + v);
    for (const int32_t v : index.outputs[op])
      if (open(v)) forward.emplace_back(at + v, op);
  }
  const size_t nodes = static_cast<size_t>(at) + p.values.size();
  std::vector<int32_t> fill(nodes + 1, 0);
  for (const auto& [a, b] : forward) ++fill[a + 1], ++fill[b + 1];
  for (size_t n = 1; n <= nodes; ++n) fill[n] += fill[n - 1];
  first_arc_ = fill;
  arcs_.resize(2 * forward.size());
  for (const auto& [a, b] : forward) {
    const int32_t there = fill[a]++, back = fill[b]++;
    arcs_[there] = {b, back, true};
    arcs_[back] = {a, there, false};
    if (a >= at) to_maker_[a - at] = there;
  }
  room_.resize(arcs_.size());
  excess_.resize(static_cast<size_t>(at));
  sink_room_.resize(static_cast<size_t>(at));
  distance_.resize(nodes);
  next_arc_.resize(nodes);
  cheaper_missing_.resize(p.values.size());
}

// A value that is missing only where that is cheaper asks its maker for the lesser of charge and fine; readers that run again ask
// for the rest of its charge.
double Stretch::least(const std::vector<double>& charges, const std::vector<double>& fines) {
  for (size_t a = 0; a < arcs_.size(); ++a) room_[a] = arcs_[a].forward ? kNoLimit : 0;
  std::fill(excess_.begin(), excess_.end(), 0.0);
  for (size_t v = 0; v < values_.size(); ++v) {
    const int32_t arc = to_maker_[v];
    if (arc < 0) continue;
    cheaper_missing_[v] = !values_[v].read && fines[v] < charges[v];
    const double asked = cheaper_missing_[v] ? fines[v] : charges[v];
    excess_[arcs_[arc].to] += asked;
    room_[arc] = charges[v] - asked;
  }
  // The greedy flow, readers before makers: each op takes what it can and passes the rest on.
  for (int32_t op = at_; op-- > 0;) {
    double supply = excess_[op];
    const double taken = std::min(supply, seconds_[op]);
    sink_room_[op] = seconds_[op] - taken;
    supply -= taken;
    for (int32_t a = first_arc_[op]; a < first_arc_[op + 1] && supply > 0; ++a) {
      if (!arcs_[a].forward) continue;
      const int32_t b = to_maker_[arcs_[a].to - at_];
      const double pushed = std::min(supply, room_[b]);
      if (!(pushed > 0)) continue;
      room_[arcs_[a].back] += pushed;
      room_[b] -= pushed;
      room_[arcs_[b].back] += pushed;
      excess_[arcs_[b].to] += pushed;
      supply -= pushed;
    }
    excess_[op] = supply;
  }
  work_ += size();
  for (int phase = 0; label() && phase < kMostPhases; ++phase) {
    for (size_t n = 0; n < next_arc_.size(); ++n) next_arc_[n] = first_arc_[n];
    for (int32_t op = 0; op < at_; ++op)
      if (excess_[op] > tolerance_ && distance_[op] != kNotReached) augment(op);
  }
  // What was asked for in all, but for what found no sink.
  double asked = 0, left = 0;
  for (size_t v = 0; v < values_.size(); ++v)
    if (to_maker_[v] >= 0) asked += cheaper_missing_[v] ? fines[v] : charges[v];
  for (int32_t op = 0; op < at_; ++op) left += excess_[op];
  return asked - left - kSumError * asked;
}

// Steps to a sink with room, over arcs with room. True if some excess can still get there.
bool Stretch::label() {
  std::fill(distance_.begin(), distance_.end(), kNotReached);
  queue_.clear();
  for (int32_t op = 0; op < at_; ++op)
    if (sink_room_[op] > tolerance_) {
      distance_[op] = 0;
      queue_.push_back(op);
    }
  bool found = false;
  for (size_t head = 0; head < queue_.size(); ++head) {
    const int32_t n = queue_[head];
    found |= n < at_ && excess_[n] > tolerance_;
    for (int32_t a = first_arc_[n]; a < first_arc_[n + 1]; ++a) {
      const int32_t from = arcs_[a].to;
      if (distance_[from] != kNotReached || !(room_[arcs_[a].back] > tolerance_)) continue;
      distance_[from] = distance_[n] + 1;
      queue_.push_back(from);
    }
  }
  work_ += size();
  return found;
}

// Sends the op's excess along shortest paths, each arc given up at most once per phase.
void Stretch::augment(int32_t from) {
  path_.clear();
  int32_t n = from;
  while (excess_[from] > tolerance_) {
    if (distance_[n] == 0) {
      double amount = std::min(excess_[from], sink_room_[n]);
      for (const int32_t a : path_) amount = std::min(amount, room_[a]);
      sink_room_[n] -= amount;
      excess_[from] -= amount;
      size_t keep = path_.size();
      for (size_t i = path_.size(); i-- > 0;) {
        room_[path_[i]] -= amount;
        room_[arcs_[path_[i]].back] += amount;
        if (!(room_[path_[i]] > tolerance_)) keep = i;
      }
      work_ += static_cast<int64_t>(path_.size());
      if (sink_room_[n] > tolerance_ && keep == path_.size()) return;  // the excess is gone
      if (!(sink_room_[n] > tolerance_)) distance_[n] = kNotReached;
      if (keep < path_.size()) {
        n = arcs_[arcs_[path_[keep]].back].to;
        path_.resize(keep);
      }
      continue;
    }
    bool stepped = false;
    if (distance_[n] != kNotReached)
      for (int32_t& a = next_arc_[n]; a < first_arc_[n + 1]; ++a) {
        ++work_;
        const int32_t to = arcs_[a].to;
        if (!(room_[a] > tolerance_) || distance_[to] == kNotReached || distance_[to] + 1 != distance_[n])
          continue;
        path_.push_back(a);
        n = to;
        stepped = true;
        break;
      }
    if (stepped) continue;
    distance_[n] = kNotReached;
    if (path_.empty()) return;
    n = arcs_[arcs_[path_.back()].back].to;
    path_.pop_back();
  }
}

// Ops that cannot reach a sink with room run again, and what they ask for is there.
bool Stretch::again(int32_t op) const { return distance_[op] == kNotReached; }

Stretch::Place Stretch::place(int32_t v) const {
  if (values_[v].busy) return Place::kBusy;
  if (again(index_->maker[v])) return Place::kMade;
  const bool asked = distance_[at_ + v] == kNotReached;
  return asked || !cheaper_missing_[v] ? Place::kStays : Place::kMissing;
}

}  // namespace cairn::plan
