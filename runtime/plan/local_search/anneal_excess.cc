// Simulated annealing in which every item above the budget counts by itself. If only the peak counted, relieving one
// of several equally high items would seem to gain nothing, as the peak remains until all of them are lower.
#include <algorithm>
#include <cmath>

#include "runtime/plan/local_search/local_search.h"

namespace cairn::plan {
namespace {

// Temperatures are in shares of a mean op's seconds. A price is what a value of mean size and lifetime costs above
// the budget, in such seconds. The work is divided into kAdaptations parts. In each the price rises while anything is
// above the budget and falls while nothing is. Above last_price the search is stuck and starts again from the best
// plan that fits.
struct Cooling {
  double first_heat, last_heat, first_price, last_price, least_price, rise;
};
constexpr Cooling kCooling[] = {{1, .05, 100, 5000, 10, 1.02}, {3, .05, 100, 5000, 30, 1.1}};  // by Prices
constexpr int64_t kAdaptations = 4000;
constexpr double kFall = .995;
constexpr int64_t kFallParts = 256;  // a falling budget is below the peak that fits by this part of it
constexpr int kTries = 16;           // to find a value that may be dropped
constexpr size_t kMostAtOnce = 4;    // values that are dropped before one item

}  // namespace

// Keeps the inputs of a value until the interval ends: while they are on the device, the value is cheap to recompute.
void LocalSearch::keep_inputs(Candidate& c, int32_t interval, Undo& undo) const {
  const int32_t maker = index_.maker[intervals_.all[interval].value], end = intervals_.all[interval].end;
  for (const int32_t v : index_.inputs[maker])
    for (int32_t g = intervals_.first[v]; g < intervals_.first[v + 1]; ++g) {
      const Intervals::Interval& i = intervals_.all[g];
      const bool tail = i.end == kNever;
      const int32_t kept = tail ? kKeepIt : rules_.base[g];
      if (i.begin >= end || (!tail && i.end <= maker) || !rules_.free[g] || c.retention_points[g] == kept)
        continue;
      undo.emplace_back(g, c.retention_points[g]);
      c.retention_points[g] = kept;
    }
}

void LocalSearch::anneal_excess(Candidate c, int64_t target, int64_t work, Prices prices) {
  if (free_intervals_.empty()) return;
  c.cost = evaluate_(c.retention_points, c.pace, sequence_);
  if (!c.cost.valid) return;
  const bool falls = prices == kFalling;
  int64_t budget = falls ? std::max(target, c.cost.peak_bytes) : target;
  const auto ops = static_cast<double>(p_.ops.size());
  double mean = 0;  // bytes x items of a residency
  for (const Residency& r : sequence_.residencies)
    mean += static_cast<double>(p_.values[r.value].bytes) * (1 + r.end - r.begin);
  mean = std::max(mean / static_cast<double>(sequence_.residencies.size()), 1.0);
  std::vector<int32_t> full, recomputed;  // items above the budget, items that recompute
  const auto look = [&] {
    full.clear();
    recomputed.clear();
    for (int32_t item = 0; item < static_cast<int32_t>(sequence_.ops.size()); ++item) {
      if (sequence_.live[item] > budget) full.push_back(item);
      if (sequence_.ops[item] != sequence_.anchor[item]) recomputed.push_back(item);
    }
    note(c);
  };
  // Copies in flight form peaks that no item has.
  const auto in_flight = [&](const Cost& cost, int64_t peak) {
    return static_cast<double>(std::max<int64_t>(0, cost.peak_bytes - std::max(peak, budget)));
  };
  double excess = 0;
  std::vector<int32_t> trace;
  const auto begin = [&] {
    look();
    trace = evaluate_.trace_of(c.retention_points);
    excess = evaluate_.priced().excess(budget) + in_flight(c.cost, sequence_.peak_bytes);
  };
  begin();
  Candidate lowest = c;  // for a falling budget
  const auto fall = [&] {
    if (falls && excess == 0 && budget > target) {
      lowest = c;
      budget = std::max(target, c.cost.peak_bytes - c.cost.peak_bytes / kFallParts - 1);
      excess = evaluate_.priced().excess(budget) + in_flight(c.cost, sequence_.peak_bytes);
    }
    look();
  };
  fall();
  Undo undo;
  const Cooling& cooling = kCooling[prices];
  double price_of_mean = cooling.first_price;
  const int64_t from = evaluate_.work(), part = std::max<int64_t>(1, work / kAdaptations);
  int64_t adapted = from;
  while (evaluate_.work() < from + work && !(falls && excess == 0 && budget <= least_bytes(p_, index_))) {
    const double done = static_cast<double>(evaluate_.work() - from) / static_cast<double>(work);
    const double heat = cooling.first_heat * std::pow(cooling.last_heat / cooling.first_heat, done) / ops;
    for (; adapted + part <= evaluate_.work(); adapted += part)
      price_of_mean =
          excess > 0 ? price_of_mean * cooling.rise : std::max(cooling.least_price, price_of_mean * kFall);
    if (price_of_mean > cooling.last_price) {  // the search is stuck
      price_of_mean = cooling.first_price;
      if (const Candidate* within = falls ? &lowest : archive_.within(budget)) {
        c = *within;
        c.cost = evaluate_(c.retention_points, c.pace, sequence_);
        begin();
      }
    }
    const double weight = price_of_mean / ops / mean;
    undo.clear();
    change_full(c, full, recomputed, undo);
    const auto take_back = [&] {
      for (; !undo.empty(); undo.pop_back()) c.retention_points[undo.back().first] = undo.back().second;
    };
    const double drawn = static_cast<double>((random() >> 11) + 1) * 0x1p-53;
    const double most = c.cost.seconds / index_.total_seconds + weight * excess - heat * std::log(drawn);
    const RetentionPricer::Price price = evaluate_.price(c.retention_points, most * index_.total_seconds);
    if (!price.valid) {
      take_back();
      continue;
    }
    if (evaluate_.priced().trace() == trace) continue;  // the change has no effect on the sequence
    double then = evaluate_.priced().excess(budget);
    if (price.seconds / index_.total_seconds + weight * then > most) {
      take_back();
      continue;
    }
    const Cost cost = evaluate_.after_price(c.retention_points, c.pace, tried_);
    if (price.copies) {
      then += in_flight(cost, price.peak_bytes);
      if (cost.seconds / index_.total_seconds + weight * then > most) {
        take_back();
        continue;
      }
    }
    std::swap(sequence_, tried_);
    c.cost = cost;
    excess = then;
    trace = evaluate_.priced().trace();
    fall();
  }
}

// Drops values before an item above the budget, or keeps a recomputed value, or changes any interval.
void LocalSearch::change_full(Candidate& c, const std::vector<int32_t>& full,
                              const std::vector<int32_t>& made_again, Undo& undo) {
  if (!full.empty() && chance(50)) {
    const int32_t item = full[random() % full.size()], here = sequence_.anchor[item];
    size_t wanted = 1;
    while (wanted < kMostAtOnce && chance(30)) ++wanted;
    for (int tries = 0; tries < kTries && undo.size() < wanted; ++tries) {
      const Residency& r = sequence_.residencies[random() % sequence_.residencies.size()];
      if (r.begin >= item || r.end <= item || sequence_.anchor[r.begin] == here) continue;
      give_up(c, intervals_.at(r.value, here - 1), here, undo);
    }
  } else if (!made_again.empty() && chance(60)) {
    keep_again(c, made_again[random() % made_again.size()], undo);
  }
  if (!undo.empty() && !chance(30)) return;
  const int32_t g = free_intervals_[random() % free_intervals_.size()];
  set(c, g, random_retention(g), undo);
}

void LocalSearch::set(Candidate& c, int32_t interval, int32_t retention_point, Undo& undo) const {
  if (interval < 0 || !rules_.free[interval]) return;
  undo.emplace_back(interval, c.retention_points[interval]);
  c.retention_points[interval] = retention_point;
}

// Drops the value. It is kept again from op `here` on, or recomputed for each use, or offloaded over a link.
void LocalSearch::give_up(Candidate& c, int32_t interval, int32_t here, Undo& undo) {
  if (interval < 0 || !rules_.free[interval]) return;
  if (links_ > 0 && may_send(interval) && (!rules_.remade[interval] || chance(50))) {
    set(c, interval, random_link(), undo);
    return;
  }
  if (!rules_.remade[interval]) return;
  set(c, interval, chance(75) ? here : chance(50) ? kNever : random_early(interval), undo);
  if (chance(40)) keep_inputs(c, interval, undo);
}

// Keeps a value that the item recomputes.
void LocalSearch::keep_again(Candidate& c, int32_t item, Undo& undo) {
  const int32_t here = sequence_.anchor[item];
  for (const int32_t v : index_.outputs[sequence_.ops[item]]) {
    const int32_t g = intervals_.at(v, here - 1);
    if (g < 0 || c.retention_points[g] < here) continue;
    const Intervals::Interval& interval = intervals_.all[g];
    const bool tail = interval.end == kNever;
    set(c, g, tail && chance(50) ? kKeepIt : chance(70) ? rules_.base[g] : interval.begin + 1, undo);
  }
}

}  // namespace cairn::plan
