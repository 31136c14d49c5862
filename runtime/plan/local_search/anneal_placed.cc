// Part of local search: a plan and its layout at once. Arenas of annealed plans are up to a tenth above their peaks, and no
// search for offsets brings that down: the plan itself has to give way where its blocks do not fit.
#include <algorithm>
#include <cmath>

#include "runtime/plan/local_search/local_search.h"

namespace cairn::plan {
namespace {

constexpr int64_t kRepairWork = 6000;  // visits of neighbours, per change
constexpr int64_t kRepairRuns = 1000;  // what a repair counts, in runs priced
// Parts of its height by which a layout above the budget may become lower or higher in a step.
constexpr int64_t kLower = 400, kHigher = 100;
// Aims below the layout by such a part of it: the first, and the last one that is worth a try.
constexpr int64_t kFirstLowering = 40, kLastLowering = 320;
constexpr int64_t kLowered = 4;  // less than such a part of that: the next aim is nearer

}  // namespace

// The order of blocks is that in which the plan's steps take them.
void LocalSearch::list_blocks(const Sequence& s, std::vector<Block>& blocks, std::vector<Stay>& stays) {
  const auto ops = static_cast<int64_t>(p_.ops.size());
  const auto time = [&](int32_t item) { return s.anchor[item] * ops + s.ops[item]; };
  opening_.clear();
  for (size_t r = 0; r < s.residencies.size(); ++r)
    opening_.emplace_back(s.residencies[r].begin, static_cast<int32_t>(r));
  std::sort(opening_.begin(), opening_.end());
  blocks.clear();
  stays.clear();
  size_t next = 0;
  for (int32_t item = 0; item < static_cast<int32_t>(s.ops.size()); ++item) {
    const Op& op = p_.ops[s.ops[item]];
    const size_t first = next;
    while (next < opening_.size() && opening_[next].first == item) ++next;
    for (const int32_t v : op.outputs)
      for (size_t k = first; k < next; ++k) {
        const Residency& r = s.residencies[opening_[k].second];
        if (r.value != v) continue;
        blocks.push_back({r.begin, r.end + 1, p_.values[v].bytes});
        stays.push_back({v, time(r.begin), time(r.end), -1});
      }
    if (op.workspace_bytes == 0) continue;
    blocks.push_back({item, item + 1, op.workspace_bytes});
    stays.push_back({static_cast<int32_t>(p_.values.size()) + s.ops[item], time(item), time(item), -1});
  }
}

// What was there all the while stays where it is. Stays of a value are in the order of time.
void LocalSearch::keep_places(const std::vector<Stay>& before, std::vector<Stay>& now) {
  first_stay_.assign(p_.values.size() + p_.ops.size(), -1);
  next_stay_.assign(before.size(), -1);
  for (size_t k = before.size(); k-- > 0;) {
    next_stay_[k] = first_stay_[before[k].value];
    first_stay_[before[k].value] = static_cast<int32_t>(k);
  }
  for (Stay& stay : now)
    for (int32_t k = first_stay_[stay.value]; k >= 0 && before[k].begin <= stay.begin; k = next_stay_[k])
      if (stay.end <= before[k].end) stay.offset = before[k].offset;
}

Placed LocalSearch::anneal_placed(Placed from, int64_t budget, int64_t work) {
  Candidate c = from.from;
  c.cost = evaluate_(c.retention_points, c.pace, sequence_);
  if (free_intervals_.empty() || !c.cost.valid) return from;
  const int64_t alignment = natural_alignment(p_), fixed = index_.persistent_bytes;
  std::vector<Stay> stays, tried_stays;
  std::vector<Block> blocks;
  list_blocks(sequence_, blocks, stays);
  for (size_t b = 0; b < stays.size(); ++b) stays[b].offset = from.offsets[b];
  Placed best = from;
  int64_t height = from.height, repairs = 0;
  const int64_t begun = evaluate_.work();
  const double scale = index_.total_seconds;
  double now = energy(c.cost.seconds, height, budget);
  std::vector<int32_t> trace = evaluate_.trace_of(c.retention_points);
  std::vector<std::pair<int32_t, int32_t>> undo;
  std::vector<int64_t> offsets;
  const auto spent = [&] { return evaluate_.work() - begun + repairs * kRepairRuns; };
  const auto place = [&](int64_t within) {
    ++repairs;
    offsets.clear();
    for (const Stay& stay : tried_stays) offsets.push_back(stay.offset);
    return repair(blocks, alignment, within - fixed, kRepairWork, offsets);
  };
  while (spent() < work) {
    const double done = static_cast<double>(spent()) / static_cast<double>(work);
    const double heat = kHot * std::pow(kCold / kHot, done) / static_cast<double>(p_.ops.size());
    undo.clear();
    change_something(c, budget, undo);
    const auto take_back = [&] {
      for (; !undo.empty(); undo.pop_back()) c.retention_points[undo.back().first] = undo.back().second;
    };
    const RetentionPricer::Price price =
        evaluate_.price(c.retention_points, (now + kSurelyNot * heat) * scale);
    const int64_t room = std::max(budget, height) + std::max(budget, height) / kHigher;
    if (!price.valid || price.copies || price.peak_bytes > room) {
      take_back();
      continue;
    }
    if (evaluate_.priced().trace() == trace) continue;  // nothing comes of the change
    const double drawn = static_cast<double>(random() >> 11) * 0x1p-53;
    const auto takes = [&](int64_t bytes) {
      const double then = energy(price.seconds, bytes, budget);
      return then <= now || drawn < std::exp((now - then) / heat);
    };
    if (!takes(price.peak_bytes)) {
      take_back();
      continue;
    }
    const Cost cost = evaluate_.after_price(c.retention_points, c.pace, tried_);
    list_blocks(tried_, blocks, tried_stays);
    keep_places(stays, tried_stays);
    // As low as wanted first, then as low as it comes, as long as annealing goes on with that.
    bool placed = false;
    int64_t tried = 0;
    for (const int64_t aim : {budget, height - height / kLower, height, room}) {
      const int64_t within = std::max({aim, price.peak_bytes, budget});
      if (within > tried && takes(within) && (placed = place(within))) break;
      tried = std::max(tried, within);
    }
    int64_t top = fixed;
    if (placed)
      for (size_t b = 0; b < blocks.size(); ++b) top = std::max(top, fixed + offsets[b] + blocks[b].bytes);
    if (!placed || !takes(top)) {
      take_back();
      continue;
    }
    now = energy(cost.seconds, top, budget);
    c.cost = cost;
    height = top;
    for (size_t b = 0; b < blocks.size(); ++b) tried_stays[b].offset = offsets[b];
    std::swap(stays, tried_stays);
    std::swap(sequence_, tried_);
    trace = evaluate_.priced().trace();
    const bool better = best.height > budget ? height < best.height
                                             : height <= budget && cost.seconds < best.from.cost.seconds;
    if (better) best = {c, offsets, height};
  }
  return best;
}

std::optional<Placed> LocalSearch::place_exactly(const Candidate& c, int64_t budget, int64_t effort,
                                                 std::vector<double>& trouble) {
  Placed placed{c, {}, index_.persistent_bytes};
  placed.from.cost = evaluate_(c.retention_points, c.pace, sequence_);
  std::vector<Block> blocks;
  std::vector<Stay> stays;
  list_blocks(sequence_, blocks, stays);
  std::vector<double> of_items;
  trouble.assign(p_.ops.size(), 0);
  if (!lay_out_exactly(blocks, natural_alignment(p_), budget - index_.persistent_bytes, effort,
                       placed.offsets, of_items)) {
    for (size_t item = 0; item < of_items.size(); ++item)
      trouble[sequence_.anchor[item]] = std::max(trouble[sequence_.anchor[item]], of_items[item]);
    return {};
  }
  for (size_t b = 0; b < blocks.size(); ++b)
    placed.height = std::max(placed.height, index_.persistent_bytes + placed.offsets[b] + blocks[b].bytes);
  return placed;
}

Placed LocalSearch::place_lower(Placed from, int64_t target, int64_t work) {
  for (int64_t part = kFirstLowering; part <= kLastLowering && from.height > target;) {
    const int64_t before = from.height, less = before / part;
    from = anneal_placed(std::move(from), std::max(target, before - less), work);
    if (from.height > before - less / kLowered) part *= 2;
  }
  return from;
}

}  // namespace cairn::plan
