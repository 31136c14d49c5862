#include "runtime/plan/sequence.h"

#include <algorithm>

namespace cairn::plan {

Gaps::Gaps(const Problem& p, const Index& index) {
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

int32_t Gaps::at(int32_t v, int32_t j) const {
  int32_t found = -1;
  for (int32_t g = first[v]; g < first[v + 1] && all[g].begin <= j; ++g) found = g;
  return found;
}

int32_t Gaps::across(const Problem& p, const Index& index, int32_t v) const {
  if (p.values[v].persistent || !index.saved(v, p.turnaround)) return -1;
  return at(v, p.turnaround - 1);
}

Thresholds Gaps::keep_all(const Problem& p) const {
  Thresholds t(all.size(), kKeepIt);
  for (int32_t op = 0; op < static_cast<int32_t>(p.ops.size()); ++op)
    for (int32_t v : p.ops[op].outputs)
      if (p.ops[op].recomputable && first[v] < first[v + 1])
        t[first[v + 1] - 1] = op < p.turnaround ? p.turnaround : kNever;
  return t;
}

double Sequence::excess(int64_t budget) const {
  double sum = 0;
  for (int64_t bytes : live)
    if (bytes > budget) sum += static_cast<double>(bytes - budget);
  return sum;
}

Sequencer::Sequencer(const Problem& p, const Index& index, const Gaps& gaps)
    : p_(p),
      index_(index),
      gaps_(gaps),
      stay_(p.values.size()),
      touches_(p.values.size()),
      tier_(p.values.size()),
      seen_value_(p.values.size(), 0),
      seen_op_(p.ops.size(), 0) {}

// The ops to run again before `op`, in order, into group_.
bool Sequencer::collect(int32_t op) {
  open_.assign(1, op);
  while (!open_.empty()) {
    const int32_t at = open_.back();
    open_.pop_back();
    for (int32_t u : index_.inputs[at]) {
      if (stay_[u] >= 0 || tier_[u] >= 0) continue;
      const int32_t maker = index_.maker[u];
      if (seen_op_[maker] == stamp_) continue;
      if (!p_.ops[maker].recomputable) return false;
      seen_op_[maker] = stamp_;
      group_.push_back(maker);
      open_.push_back(maker);
    }
  }
  std::sort(group_.begin(), group_.end());
  return true;
}

void Sequencer::touch(int32_t v, int32_t item, Sequence& out) {
  if (stay_[v] < 0) {
    stay_[v] = static_cast<int32_t>(out.stays.size());
    out.stays.push_back({v, item, item, tier_[v], -1});
    tier_[v] = -1;
  } else {
    out.stays[stay_[v]].end = item;
  }
  if (seen_value_[v] == stamp_) return;
  seen_value_[v] = stamp_;
  touched_.push_back(v);
}

bool Sequencer::run(const Thresholds& t, Sequence& out, int64_t most_items) {
  out.ops.clear();
  out.anchor.clear();
  out.stays.clear();
  out.seconds = 0;
  std::fill(stay_.begin(), stay_.end(), -1);
  std::fill(touches_.begin(), touches_.end(), 0);
  std::fill(tier_.begin(), tier_.end(), int16_t{-1});
  const auto ops = static_cast<int32_t>(p_.ops.size());
  for (int32_t j = 0; j < ops; ++j) {
    if (stamp_ == kNever) {
      std::fill(seen_value_.begin(), seen_value_.end(), 0);
      std::fill(seen_op_.begin(), seen_op_.end(), 0);
      stamp_ = 0;
    }
    ++stamp_;
    group_.clear();
    touched_.clear();
    for (int32_t u : index_.inputs[j])
      if (stay_[u] < 0 && tier_[u] < 0) {
        if (!collect(j)) return false;
        break;
      }
    group_.push_back(j);
    if (static_cast<int64_t>(out.ops.size() + group_.size()) > most_items) return false;
    for (int32_t op : group_) {
      const auto item = static_cast<int32_t>(out.ops.size());
      out.ops.push_back(op);
      out.anchor.push_back(j);
      out.seconds += p_.ops[op].seconds;
      for (int32_t u : index_.inputs[op]) touch(u, item, out);
      for (int32_t w : index_.outputs[op]) {
        tier_[w] = -1;  // made here: not fetched
        touch(w, item, out);
      }
    }
    for (int32_t u : index_.inputs[j]) ++touches_[u];
    for (int32_t w : index_.outputs[j]) ++touches_[w];
    for (int32_t v : touched_) {
      const int32_t gap = gaps_.first[v] + touches_[v] - 1;
      const int32_t threshold = t[gap];
      if (threshold >= 0) {
        if (j < threshold) stay_[v] = -1;
      } else if (gaps_.all[gap].begin == j) {
        out.stays[stay_[v]].to = tier_[v] = static_cast<int16_t>(link_of(threshold));
        stay_[v] = -1;
      }
    }
  }
  work_ += static_cast<int64_t>(out.ops.size());
  measure(out);
  return true;
}

void Sequencer::measure(Sequence& out) const {
  const size_t items = out.ops.size();
  out.live.assign(items + 1, 0);
  for (const Stay& s : out.stays) {
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
