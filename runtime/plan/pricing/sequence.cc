#include "runtime/plan/pricing/sequence.h"

#include <algorithm>

namespace cairn::plan {

Intervals::Intervals(const Problem& p, const Index& index) {
  const auto values = static_cast<int32_t>(p.values.size());
  for (int32_t v = 0; v < values; ++v) {
    first.push_back(static_cast<int32_t>(all.size()));
    if (p.values[v].persistent || index.maker[v] < 0) continue;
    int32_t begin = index.maker[v];
    for (int32_t reader : index.readers[v]) {
      all.push_back({v, begin, reader});
      begin = reader;
    }
    all.push_back({v, begin, kNever});
  }
  first.push_back(static_cast<int32_t>(all.size()));
}

int32_t Intervals::at(int32_t v, int32_t j) const {
  int32_t found = -1;
  for (int32_t g = first[v]; g < first[v + 1] && all[g].begin <= j; ++g) found = g;
  return found;
}

int32_t Intervals::across(const Problem& p, const Index& index, int32_t v) const {
  if (p.values[v].persistent || !index.saved(v, p.backward_begin)) return -1;
  return at(v, p.backward_begin - 1);
}

RetentionPoints Intervals::keep_all(const Problem& p) const {
  RetentionPoints t(all.size(), kKeepIt);
  for (int32_t op = 0; op < static_cast<int32_t>(p.ops.size()); ++op)
    for (int32_t v : p.ops[op].outputs)
      if (p.ops[op].recomputable && first[v] < first[v + 1])
        t[first[v + 1] - 1] = op < p.backward_begin ? p.backward_begin : kNever;
  return t;
}

double Sequence::excess(int64_t budget) const {
  double sum = 0;
  for (int64_t bytes : live)
    if (bytes > budget) sum += static_cast<double>(bytes - budget);
  return sum;
}

Sequencer::Sequencer(const Problem& p, const Index& index, const Intervals& intervals)
    : p_(p), index_(index), intervals_(intervals), seen_op_(p.ops.size(), 0) {
  for (int32_t op = 0; op < static_cast<int32_t>(p.ops.size()); ++op) {
    Row row{};
    row.inputs = static_cast<int32_t>(uses_.size());
    uses_.insert(uses_.end(), index.inputs[op].begin(), index.inputs[op].end());
    row.outputs = static_cast<int32_t>(uses_.size());
    uses_.insert(uses_.end(), index.outputs[op].begin(), index.outputs[op].end());
    row.end = static_cast<int32_t>(uses_.size());
    row.recomputable = p.ops[op].recomputable;
    row.seconds = p.ops[op].seconds;
    rows_.push_back(row);
  }
  for (size_t v = 0; v < p.values.size(); ++v) start_.push_back({-1, intervals.first[v] - 1, 0, -1, -1});
}

void Sequencer::note_early(const RetentionPoints& t) {
  early_.clear();
  for (size_t g = 0; g < t.size(); ++g)
    if (is_early(t[g]) && intervals_.all[g].begin < held_from(t[g]) &&
        held_from(t[g]) < intervals_.all[g].end)
      early_.emplace_back(held_from(t[g]), static_cast<int32_t>(g));
  std::sort(early_.begin(), early_.end());
}

// Puts the op that makes v on the list of ops to run before the present one.
inline void Sequencer::want(int32_t v) {
  const int32_t maker = index_.maker[v];
  if (seen_op_[maker] == stamp_) return;
  seen_op_[maker] = stamp_;
  group_.push_back(maker);
  open_.push_back(maker);
}

// Adds to the group the ops whose outputs its ops need, and so on; then orders it. False if one of them may not run
// again.
bool Sequencer::collect() {
  while (!open_.empty()) {
    const Row& row = rows_[open_.back()];
    open_.pop_back();
    if (!row.recomputable) return false;
    for (int32_t k = row.inputs; k < row.outputs; ++k)
      if (missing(uses_[k])) want(uses_[k]);
  }
  std::sort(group_.begin(), group_.end());
  return true;
}

inline void Sequencer::use(int32_t v, int32_t item, Sequence& out) {
  State& s = state_[v];
  if (s.residency < 0) {
    s.residency = static_cast<int32_t>(out.residencies.size());
    out.residencies.push_back({v, item, item, static_cast<int16_t>(s.tier), -1});
    s.tier = -1;
  } else {
    out.residencies[s.residency].end = item;
  }
  if (s.seen == stamp_) return;
  s.seen = stamp_;
  used_.push_back(v);
}

// The value was offloaded in vain: it is recomputed before it is fetched, or no op uses it any more.
inline void Sequencer::never_mind(State& s, Sequence& out) {
  if (s.tier < 0) return;
  out.residencies[s.left].to = -1;
  s.tier = -1;
}

void Sequencer::run_group(int32_t anchor, Sequence& out) {
  for (int32_t op : group_) {
    const Row& row = rows_[op];
    const auto item = static_cast<int32_t>(out.ops.size());
    out.ops.push_back(op);
    out.anchor.push_back(anchor);
    out.seconds += row.seconds;
    for (int32_t k = row.inputs; k < row.outputs; ++k) use(uses_[k], item, out);
    for (int32_t k = row.outputs; k < row.end; ++k) {
      never_mind(state_[uses_[k]], out);
      use(uses_[k], item, out);
    }
  }
}

bool Sequencer::run(const RetentionPoints& t, Sequence& out, const Limits& limits) {
  out.ops.clear();
  out.anchor.clear();
  out.residencies.clear();
  out.seconds = 0;
  state_ = start_;
  std::fill(seen_op_.begin(), seen_op_.end(), 0);
  const auto ops = static_cast<int32_t>(rows_.size());
  double again = 0;
  note_early(t);
  auto next_early = early_.begin();
  for (int32_t j = 0; j < ops; ++j) {
    stamp_ = j + 1;
    group_.clear();
    open_.clear();
    used_.clear();
    const Row& row = rows_[j];
    for (int32_t k = row.inputs; k < row.outputs; ++k)
      if (missing(uses_[k])) want(uses_[k]);
    for (; next_early != early_.end() && next_early->first == j; ++next_early)
      if (const int32_t v = intervals_.all[next_early->second].value; missing(v)) want(v);
    if (!group_.empty()) {
      if (!collect()) return false;
      for (int32_t op : group_) again += rows_[op].seconds;
    }
    group_.push_back(j);
    if (static_cast<int64_t>(out.ops.size() + group_.size()) > limits.items ||
        index_.total_seconds + again > limits.seconds) {
      work_ += static_cast<int64_t>(out.ops.size());
      return false;
    }
    run_group(j, out);
    for (int32_t k = row.inputs; k < row.end; ++k) ++state_[uses_[k]].interval;
    for (int32_t v : used_) {
      State& s = state_[v];
      const int32_t retention_point = t[s.interval];
      if (retention_point >= 0) {
        if (j < held_from(retention_point)) s.residency = -1;
      } else if (intervals_.all[s.interval].begin == j) {
        s.tier = link_of(retention_point);
        out.residencies[s.residency].to = static_cast<int16_t>(s.tier);
        s.left = s.residency;
        s.residency = -1;
      }
    }
  }
  for (State& s : state_) never_mind(s, out);
  work_ += static_cast<int64_t>(out.ops.size());
  measure(out);
  return true;
}

void Sequencer::measure(Sequence& out) const {
  const size_t items = out.ops.size();
  out.live.assign(items + 1, 0);
  for (const Residency& s : out.residencies) {
    const int64_t bytes = p_.values[s.value].bytes;
    out.live[s.begin] += bytes;
    out.live[s.end + 1] -= bytes;
  }
  int64_t alive = index_.persistent_bytes;
  out.peak_bytes = alive;
  out.peak_item = -1;
  for (size_t i = 0; i < items; ++i) {
    alive += out.live[i];
    out.live[i] = alive + p_.ops[out.ops[i]].workspace_bytes;
    if (out.live[i] > out.peak_bytes) {
      out.peak_bytes = out.live[i];
      out.peak_item = static_cast<int32_t>(i);
    }
  }
  out.live.pop_back();
}

}  // namespace cairn::plan
