#include "runtime/plan/local_search/greedy.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cairn::plan {
namespace {

// The price of a value: the seconds to recompute it, to a power, divided by its bytes. alone: the seconds of evicted
// inputs are included; else these inputs are assumed to be recomputed anyway. to_fit: only the bytes above the budget
// count.
constexpr Greedy::Price kGreedyPrices[] = {
    {1, false, true}, {.7, false, true}, {1.4, false, true}, {1, true, false}};

}  // namespace

Greedy::Greedy(const Problem& p, const Index& index, const Intervals& intervals, const Rules& rules,
               Evaluator& evaluate, Archive& archive)
    : p_(p),
      index_(index),
      intervals_(intervals),
      rules_(rules),
      evaluate_(evaluate),
      archive_(archive),
      seen_(p.ops.size(), 0) {}

void Greedy::run(int64_t budget, int64_t work) {
  const int64_t until = evaluate_.work() + work;
  for (const Price& price : kGreedyPrices) {
    Candidate c = everything_kept();
    if (!evict(c, budget, price, until)) continue;
    for (const bool alone : {false, true}) {
      Candidate kept_again = c;
      keep_again(kept_again, budget, alone, until);
      archive_.add(kept_again.retention_points, kept_again.pace, kept_again.cost);
    }
  }
}

// The start: forward values are kept even after their last reader. That takes memory only if something is recomputed
// from them.
Candidate Greedy::everything_kept() const {
  Candidate c{rules_.base, {}, {}};
  for (size_t g = 0; g < intervals_.all.size(); ++g) {
    const Intervals::Interval& interval = intervals_.all[g];
    if (interval.end == kNever && interval.begin < p_.backward_begin && rules_.free[g] && rules_.remade[g])
      c.retention_points[g] = kKeepIt;
  }
  return c;
}

int32_t Greedy::interval_in_backward(int32_t value) const {
  return rules_.across[value] >= 0 ? rules_.across[value] : intervals_.at(value, p_.backward_begin - 1);
}

// The seconds of the ops that make the value from values that are kept for backward.
double Greedy::recompute_seconds(const Candidate& c, int32_t value, bool alone) {
  double seconds = 0;
  ++question_;
  todo_.assign(1, index_.maker[value]);
  while (!todo_.empty()) {
    const int32_t op = todo_.back();
    todo_.pop_back();
    if (std::exchange(seen_[op], question_) == question_) continue;
    seconds += p_.ops[op].seconds;
    for (const int32_t u : index_.inputs[op]) {
      const int32_t g = index_.maker[u] < p_.backward_begin ? interval_in_backward(u) : -1;
      if (g >= 0 && c.retention_points[g] > 0 && rules_.remade[g] && (alone || rules_.across[u] < 0))
        todo_.push_back(index_.maker[u]);
    }
  }
  return seconds;
}

bool Greedy::measure(Candidate& c) {
  if (!evaluate_.price(c.retention_points).valid) return false;
  c.cost = evaluate_.after_price(c.retention_points, c.pace, sequence_);
  return c.cost.valid;
}

bool Greedy::evict(Candidate& c, int64_t budget, const Price& price, int64_t until) {
  evicted_.clear();
  if (!measure(c)) return false;
  std::vector<std::pair<double, int32_t>> order;  // price, interval
  std::vector<char> in_vain(intervals_.all.size(), false);
  while (c.cost.peak_bytes > budget) {
    const int32_t item = sequence_.peak_item, here = sequence_.anchor[item];
    const int64_t over = sequence_.peak_bytes - budget;
    const double excess = sequence_.excess(budget);
    order.clear();
    for (const Residency& r : sequence_.residencies) {
      if (r.begin >= item || r.end <= item || index_.maker[r.value] >= p_.backward_begin) continue;
      const int32_t g = interval_in_backward(r.value);
      if (g < 0 || in_vain[g] || !rules_.free[g] || !rules_.remade[g] || c.retention_points[g] > 0 ||
          intervals_.all[g].begin >= here || p_.values[r.value].bytes == 0)
        continue;
      const int64_t bytes =
          price.to_fit ? std::min(p_.values[r.value].bytes, over) : p_.values[r.value].bytes;
      const double seconds = recompute_seconds(c, r.value, price.alone);
      order.emplace_back(std::pow(seconds, price.exponent) / static_cast<double>(bytes), g);
    }
    std::sort(order.begin(), order.end());
    bool lower = false;
    for (size_t k = 0; k < order.size() && !lower; ++k) {
      const int32_t g = order[k].second, before = c.retention_points[g];
      if (evaluate_.work() > until) return false;
      c.retention_points[g] = intervals_.all[g].begin + 1;
      lower = evaluate_.price(c.retention_points).valid && evaluate_.priced().excess(budget) < excess;
      if (!lower) {
        c.retention_points[g] = before;
        in_vain[g] = true;
        continue;
      }
      evicted_.push_back(g);
      std::fill(in_vain.begin(), in_vain.end(), false);
    }
    if (order.empty() || (lower && !measure(c))) return false;
  }
  return true;
}

// The last evictions often free more than is needed. So values are kept again, those that take longest to recompute
// first.
void Greedy::keep_again(Candidate& c, int64_t budget, bool alone, int64_t until) {
  std::vector<std::pair<double, int32_t>> order;
  for (const int32_t g : evicted_)
    order.emplace_back(-recompute_seconds(c, intervals_.all[g].value, alone), g);
  std::sort(order.begin(), order.end());
  for (const auto& [seconds, g] : order) {
    if (evaluate_.work() > until) return;
    const int32_t evicted = std::exchange(c.retention_points[g], kept(g));
    const RetentionPricer::Price found = evaluate_.price(c.retention_points, c.cost.seconds);
    Cost cost;
    if (found.valid && found.peak_bytes <= budget && found.seconds < c.cost.seconds)
      cost = evaluate_.after_price(c.retention_points, c.pace, sequence_);
    if (cost.valid && cost.peak_bytes <= budget && cost.seconds < c.cost.seconds)
      c.cost = cost;
    else
      c.retention_points[g] = evicted;
  }
}

}  // namespace cairn::plan
