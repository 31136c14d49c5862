// Part of the search for one budget: graphs without a backward half, where arenas are what is in the way. Peaks are annealed, then
// the exact search for offsets says whether the plan fits and, if not, which ops are in trouble: there the plan has to stay lower.
#include <algorithm>
#include <array>

#include "runtime/plan/search/search.h"

namespace cairn::plan {
namespace {

constexpr size_t kMostPriced = 1500;  // ops of graphs that this is for
constexpr int64_t kLimitedWork =
    20'000'000 / CAIRN_SEARCH_SHARE;  // of annealing again where a few limits are lower
constexpr int64_t kPeaksWork = 200'000'000 / CAIRN_SEARCH_SHARE,
                  kLimitsPackedWork = 110'000'000 / CAIRN_SEARCH_SHARE;
constexpr int64_t kWarmWork = 60'000'000 / CAIRN_SEARCH_SHARE;
constexpr int kLimitRounds = 6, kRoomRounds = 2;  // of lower limits: at the budget, and at less
constexpr int64_t kLimitLowered = 64;  // limits in trouble become lower by such a part of the budget
constexpr double kTrouble = .2;        // of the worst: what counts as trouble
constexpr int64_t kLimitedEffort = 2;  // of the exact search
constexpr std::array<int64_t, 3> kHoleShares = {
    0, 32, 16};                         // left free for holes of the layout: such parts of the budget
constexpr double kWorthAgain = 1.002;   // times the seconds of peaks alone: limits are annealed at once more
constexpr double kWorthPacking = 1.03;  // times the seconds of peaks alone: packing may be faster
constexpr double kCrowded =
    1.1;  // times the seconds of everything kept: of peaks alone, near the smallest budget
// The smallest budget: of annealing peaks, and of packing; plans on the way are lower by such a part.
constexpr int64_t kLowPeakWork = 50'000'000 / CAIRN_SEARCH_SHARE,
                  kLowPackedWork = 60'000'000 / CAIRN_SEARCH_SHARE;
constexpr int64_t kWayDown = 32;

void take_faster(std::optional<Fit>& best, std::optional<Fit> fit) {
  if (fit && (!best || fit->plan.predicted_seconds < best->plan.predicted_seconds)) best = std::move(fit);
}

}  // namespace

bool OneBudget::prices_layouts() const { return s_.places() && s_.p.ops.size() <= kMostPriced; }

// Lowers the limits of ops in trouble and anneals a little, until the exact search has offsets for everything.
std::optional<Fit> OneBudget::place_by_limits(Candidate c, int64_t budget, std::vector<int64_t>& limits,
                                              int rounds) {
  std::vector<double> trouble;
  for (int round = 0;; ++round) {
    if (const auto placed = s_.local_search.place_exactly(c, budget, kLimitedEffort, trouble))
      return s_.fit_of(*placed);
    if (round == rounds) return {};
    bool lower = false;
    for (size_t op = 0; op < limits.size(); ++op) {
      if (trouble[op] < kTrouble) continue;
      limits[op] -= (budget - s_.index.persistent_bytes) / kLimitLowered;
      lower = true;
    }
    if (!lower) return {};
    const auto next = s_.local_search.anneal_excess(c, limits, kLimitedWork, LocalSearch::kClose);
    if (!next) return {};
    c = *next;
  }
}

// Peaks annealed at the budget and at less, which leaves room for holes of the layout; what fits is annealed once more within the
// limits that it came to.
OneBudget::ByLimits OneBudget::search_by_limits(const Candidate& start, int64_t budget) {
  const int64_t above = budget - s_.index.persistent_bytes;
  ByLimits found;
  std::vector<int64_t> limits_of_best;
  const auto anneal = [&](const std::vector<int64_t>& limits) {
    return s_.local_search.anneal_excess(start, limits, kPeaksWork, LocalSearch::kRising);
  };
  for (const int64_t room : kHoleShares) {
    std::vector<int64_t> limits(s_.p.ops.size(), room > 0 ? budget - above / room : budget);
    const auto low = anneal(limits);
    if (!low || (found.fit && found.fit->plan.predicted_seconds <= low->cost.seconds)) break;
    found.low.push_back(*low);
    auto fit = place_by_limits(*low, budget, limits, room == 0 ? kLimitRounds : kRoomRounds);
    if (!fit || (found.fit && fit->plan.predicted_seconds >= found.fit->plan.predicted_seconds)) continue;
    found.fit = std::move(fit);
    limits_of_best = limits;
  }
  if (found.fit && found.fit->plan.predicted_seconds > kWorthAgain * found.low[0].cost.seconds)
    if (const auto low = anneal(limits_of_best); low && low->cost.seconds < found.fit->plan.predicted_seconds)
      take_faster(found.fit, place_by_limits(*low, budget, limits_of_best, kLimitRounds / 2));
  return found;
}

std::optional<Fit> OneBudget::solve_by_limits(int64_t budget) {
  if (least_bytes(s_.p, s_.index) > budget) return {};
  restart();
  const Candidate all = s_.archive.plans().begin()->second;
  ByLimits found = search_by_limits(all, budget);
  std::optional<Fit>& best = found.fit;
  const std::vector<Candidate>& low = found.low;
  const auto pack = [&](const Fit& fit, int64_t work, bool warm) {
    const Placed placed = s_.local_search.anneal_packed(s_.placed(fit), budget, work, warm);
    if (placed.height <= budget) take_faster(best, s_.fit_of(placed));
  };
  const bool crowded = low.empty() || low[0].cost.seconds > kCrowded * s_.index.total_seconds;
  const bool slow = best && best->plan.predicted_seconds > kWorthPacking * low[0].cost.seconds;
  if (slow || (!best && !crowded))
    for (const Candidate& c : low) {
      pack({s_.lay_out(c, budget), c}, kLimitsPackedWork, false);
      if (best) break;
    }
  if (!best) {
    if (smallest_made().plan.arena_bytes > budget) return {};
    restart();  // whether the smallest plan was known must not matter
    best = *std::find_if(way_down_.begin(), way_down_.end(),
                         [&](const Fit& fit) { return fit.plan.arena_bytes <= budget; });
    pack(Fit(*best), kWarmWork, false);
  }
  pack(Fit(*best), kWarmWork, true);
  return best;
}

// Seconds hardly count here: first peaks alone come down, then the arena of the lowest one does, together with the plan.
void OneBudget::smallest_by_limits() {
  restart();
  const Candidate all = s_.archive.plans().begin()->second;
  way_down_ = {Fit{s_.lay_out(all, all.cost.peak_bytes), all}};
  const auto add = [&](Fit fit) {
    if (fit.plan.arena_bytes < way_down_.back().plan.arena_bytes) way_down_.push_back(std::move(fit));
  };
  const int64_t least = least_bytes(s_.p, s_.index);
  s_.local_search.anneal_excess(all, least, kLowPeakWork, LocalSearch::kFalling);
  const Candidate lowest = s_.archive.plans().begin()->second;
  add({s_.lay_out(lowest, lowest.cost.peak_bytes), lowest});
  for (const Placed& placed :
       s_.local_search.pack_lower(s_.placed(way_down_.back()), least, kLowPackedWork, kWayDown))
    add(s_.fit_of(placed));
  smallest_made_ = way_down_.back();
}

}  // namespace cairn::plan
