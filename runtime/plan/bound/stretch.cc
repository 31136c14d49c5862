#include "runtime/plan/bound/stretch.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cairn::plan {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
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
  // Arcs op -> input and value -> its maker, each stored next to its reverse; sorted by node.
  std::vector<std::pair<int32_t, int32_t>> forward;
  const auto open = [&](int32_t v) { return values_[v].made && !values_[v].busy; };
  for (int32_t op = 0; op < at; ++op) {
    if (seconds_[op] < kNoLimit)
      for (const int32_t v : index.inputs[op])
        if (open(v)) forward.emplace_back(op, at + v);
    for (const int32_t v : index.outputs[op])
      if (open(v)) forward.emplace_back(at + v, op);
  }
  flow_ = Flow(at, static_cast<size_t>(at) + p.values.size(), forward);
  flow_.tolerance = 1e-14 * all;
  for (int32_t v = 0; v < static_cast<int32_t>(p.values.size()); ++v)
    for (int32_t a = flow_.begin(at + v); a < flow_.end(at + v); ++a)
      if (flow_.arcs()[a].forward) to_maker_[v] = a;
  cheaper_missing_.resize(p.values.size());
}

// Where it is cheaper, a value may be missing: its maker then receives the lesser of charge and fine. Readers that
// run again add the rest of its charge.
double Stretch::least(const std::vector<double>& charges, const std::vector<double>& fines) {
  const std::vector<Flow::Arc>& arcs = flow_.arcs();
  for (size_t a = 0; a < arcs.size(); ++a) flow_.room[a] = arcs[a].forward ? kNoLimit : 0;
  std::fill(flow_.excess.begin(), flow_.excess.end(), 0.0);
  for (size_t v = 0; v < values_.size(); ++v) {
    const int32_t arc = to_maker_[v];
    if (arc < 0) continue;
    cheaper_missing_[v] = !values_[v].read && fines[v] < charges[v];
    const double asked = cheaper_missing_[v] ? fines[v] : charges[v];
    flow_.excess[arcs[arc].to] += asked;
    flow_.room[arc] = charges[v] - asked;
  }
  // The greedy flow, readers before makers: each op takes what it can and passes the rest on.
  for (int32_t op = at_; op-- > 0;) {
    double supply = flow_.excess[op];
    const double taken = std::min(supply, seconds_[op]);
    flow_.sink_room[op] = seconds_[op] - taken;
    supply -= taken;
    for (int32_t a = flow_.begin(op); a < flow_.end(op) && supply > 0; ++a) {
      if (!arcs[a].forward) continue;
      const int32_t b = to_maker_[arcs[a].to - at_];
      const double pushed = std::min(supply, flow_.room[b]);
      if (!(pushed > 0)) continue;
      flow_.room[arcs[a].back] += pushed;
      flow_.room[b] -= pushed;
      flow_.room[arcs[b].back] += pushed;
      flow_.excess[arcs[b].to] += pushed;
      supply -= pushed;
    }
    flow_.excess[op] = supply;
  }
  work_ += size();
  flow_.augment();
  // All that was pushed, without what reached no sink.
  double asked = 0, left = 0;
  for (size_t v = 0; v < values_.size(); ++v)
    if (to_maker_[v] >= 0) asked += cheaper_missing_[v] ? fines[v] : charges[v];
  for (int32_t op = 0; op < at_; ++op) left += flow_.excess[op];
  return asked - left - kSumError * asked;
}

// Ops that cannot reach a sink with room run again, and their inputs are present.
bool Stretch::again(int32_t op) const { return !flow_.reaches(op); }

Stretch::Place Stretch::place(int32_t v) const {
  if (values_[v].busy) return Place::kBusy;
  if (again(index_->maker[v])) return Place::kMade;
  const bool asked = !flow_.reaches(at_ + v);
  return asked || !cheaper_missing_[v] ? Place::kStays : Place::kMissing;
}

}  // namespace cairn::plan
