// The random changes that annealing tries.
#include <algorithm>

#include "runtime/plan/local_search/local_search.h"

namespace cairn::plan {

// A point from which the value is recomputed early: where another op reads the same inputs, or anywhere in the
// interval.
int32_t LocalSearch::random_early(int32_t g) {
  const Intervals::Interval& interval = intervals_.all[g];
  const int32_t end = interval.end == kNever ? static_cast<int32_t>(p_.ops.size()) : interval.end;
  if (end <= interval.begin + 1) return interval.begin + 1;
  const auto inputs = index_.inputs[index_.maker[interval.value]];
  for (int tries = 0; tries < 4 && !inputs.empty(); ++tries) {
    const auto readers = index_.readers[inputs[random() % inputs.size()]];
    if (readers.empty()) continue;
    const int32_t op = readers[random() % readers.size()];
    if (interval.begin < op && op < end) return early(op);
  }
  return early(interval.begin + 1 +
               static_cast<int32_t>(random() % static_cast<uint64_t>(end - interval.begin - 1)));
}

int32_t LocalSearch::random_retention(int32_t g) {
  const Intervals::Interval& interval = intervals_.all[g];
  if (!rules_.remade[g]) return links_ > 0 && chance(50) ? random_link() : rules_.base[g];
  const bool across = rules_.across[interval.value] == g;
  const auto pick = static_cast<int>(random() % 100);
  // The interval after the last reader: the value may be kept for ops that are recomputed from it.
  if (pick < 40) return interval.end == kNever && chance(50) ? kKeepIt : rules_.base[g];
  if (across && links_ > 0 && pick < 60) return random_link();
  if (pick < 75)
    return std::max(interval.begin + 1, interval.begin < p_.backward_begin ? p_.backward_begin : 0);
  if (pick < 82) return kNever;
  if (pick < 90) return random_early(g);
  const int32_t end = interval.end == kNever ? static_cast<int32_t>(p_.ops.size()) : interval.end;
  return interval.begin + 1 +
         static_cast<int32_t>(random() % static_cast<uint64_t>(std::max(1, end - interval.begin)));
}

// A change that may gain something. Above the budget a value is dropped before the fullest item; else a recomputed
// value is kept.
void LocalSearch::change_something(Candidate& c, int64_t budget,
                                   std::vector<std::pair<int32_t, int32_t>>& undo) {
  const auto set = [&](int32_t g, int32_t retention_point) {
    if (g < 0 || !rules_.allows(g, retention_point)) return;
    undo.emplace_back(g, c.retention_points[g]);
    c.retention_points[g] = retention_point;
  };
  const bool over = c.cost.peak_bytes > budget;
  if (chance(over ? 60 : 15) && sequence_.peak_item >= 0) {
    const int32_t item = sequence_.peak_item, here = sequence_.anchor[item];
    for (int tries = 0; tries < 8 && undo.empty(); ++tries) {
      const Residency& residency = sequence_.residencies[random() % sequence_.residencies.size()];
      if (residency.begin >= item || residency.end <= item || sequence_.anchor[residency.begin] == here)
        continue;
      const int32_t g = intervals_.at(residency.value, here - 1);
      const bool sends = g >= 0 && links_ > 0 && may_send(g);
      set(g, sends && (!rules_.remade[g] || chance(50)) ? random_link() : here);
    }
  } else if (chance(60) && sequence_.ops.size() > p_.ops.size()) {
    for (int tries = 0; tries < 24 && undo.empty(); ++tries) {
      const size_t item = random() % sequence_.ops.size();
      const int32_t op = sequence_.ops[item], here = sequence_.anchor[item];
      if (op == here) continue;
      for (int32_t v : index_.outputs[op]) {
        const int32_t g = intervals_.at(v, here - 1);
        if (g < 0 || c.retention_points[g] < here) continue;
        const bool tail = intervals_.all[g].end == kNever;
        set(g, tail && chance(50) ? kKeepIt : chance(70) ? rules_.base[g] : intervals_.all[g].begin + 1);
      }
    }
  }
  if (undo.empty() || chance(30)) {
    const int32_t g = free_intervals_[random() % free_intervals_.size()];
    set(g, random_retention(g));
  }
}

}  // namespace cairn::plan
