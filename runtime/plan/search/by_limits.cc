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
constexpr int kRoomRounds = 2;
constexpr int64_t kLimitLowered = 64;  // limits in trouble become lower by such a part of the budget
constexpr double kTrouble = .2;        // of the worst: what counts as trouble
constexpr int64_t kLimitedEffort = 2;  // of the exact search
constexpr std::array<int64_t, 3> kHoleShares = {
    0, 32, 16};                         // left free for holes of the layout: such parts of the budget
constexpr int64_t kDownRoom = 32;       // the only one besides, on the way to the smallest plan
constexpr double kWorthAgain = 1.002;   // times the seconds of peaks alone: limits are annealed at once more
constexpr double kWorthPacking = 1.03;  // times the seconds of peaks alone: packing may be faster
// The smallest budget: each aim is less by such a part. The first one, and the last one that is worth a try.
constexpr int64_t kFirstDown = 8, kLastDown = 64;
constexpr int kMostDowns = 6;

void take_faster(std::optional<Fit>& best, std::optional<Fit> fit) {
  if (fit && (!best || fit->plan.predicted_seconds < best->plan.predicted_seconds)) best = std::move(fit);
}

}  // namespace

struct OneBudget::Limited {
  int64_t peaks, packed;  // work, of each annealing
  int rounds;
  bool improves;  // else the first plan that fits is good enough
  LocalSearch::Prices prices = LocalSearch::kRising;
};

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
std::optional<Fit> OneBudget::search_by_limits(const Candidate& start, int64_t budget, const Limited& work) {
  const int64_t above = budget - s_.index.persistent_bytes;
  std::optional<Fit> best;
  std::vector<Candidate> low;  // peaks within the budget, with less and less
  std::vector<int64_t> limits_of_best;
  double fastest = 0;
  const auto anneal = [&](const std::vector<int64_t>& limits) {
    return s_.local_search.anneal_excess(start, limits, work.peaks, work.prices);
  };
  for (const int64_t room : kHoleShares) {
    if (!work.improves && room != kHoleShares.front() && room != kDownRoom) continue;
    std::vector<int64_t> limits(s_.p.ops.size(), room > 0 ? budget - above / room : budget);
    const auto found = anneal(limits);
    if (!found) break;
    if (room == 0) fastest = found->cost.seconds;
    if (best && best->plan.predicted_seconds <= found->cost.seconds) break;
    low.push_back(*found);
    auto fit = place_by_limits(*found, budget, limits, room == 0 ? work.rounds : kRoomRounds);
    if (fit && (!best || fit->plan.predicted_seconds < best->plan.predicted_seconds)) {
      best = std::move(fit);
      limits_of_best = limits;
      if (!work.improves) return best;
    }
  }
  if (best && work.improves && best->plan.predicted_seconds > kWorthAgain * fastest)
    if (const auto found = anneal(limits_of_best);
        found && found->cost.seconds < best->plan.predicted_seconds)
      take_faster(best, place_by_limits(*found, budget, limits_of_best, work.rounds / 2));
  const bool slow = !best || (work.improves && best->plan.predicted_seconds > kWorthPacking * fastest);
  for (size_t k = 0; slow && k < low.size() && (k == 0 || (!best && work.improves)); ++k) {
    const Placed from = s_.placed({s_.lay_out(low[k], budget), low[k]});
    const Placed placed = s_.local_search.anneal_packed(from, budget, work.packed);
    if (placed.height <= budget) take_faster(best, s_.fit_of(placed));
  }
  return best;
}

std::optional<Fit> OneBudget::solve_by_limits(int64_t budget) {
  if (least_bytes(s_.p, s_.index) > budget) return {};
  restart();
  const Candidate all = s_.archive.plans().begin()->second;
  std::optional<Fit> best;
  for (const auto prices : {LocalSearch::kRising, LocalSearch::kCheap})
    if (!best) best = search_by_limits(all, budget, {kPeaksWork, kLimitsPackedWork, 6, true, prices});
  if (!best && smallest_made().plan.arena_bytes <= budget) best = smallest_made();
  if (best)
    take_faster(best, s_.fit_of(s_.local_search.anneal_packed(s_.placed(*best), budget, kWarmWork, true)));
  return best;
}

// From everything kept, down as long as that goes well.
void OneBudget::smallest_by_limits() {
  restart();
  const Candidate all = s_.archive.plans().begin()->second;
  smallest_made_ = Fit{s_.lay_out(all, all.cost.peak_bytes), all};
  const int64_t least = least_bytes(s_.p, s_.index);
  int64_t part = kFirstDown;
  for (int aims = 0; aims < kMostDowns && part <= kLastDown; ++aims) {
    const int64_t arena = smallest_made_->plan.arena_bytes, aim = std::max(least, arena - arena / part);
    if (aim >= arena) return;
    auto fit = search_by_limits(Candidate(smallest_made_->from), aim,
                                {50'000'000 / CAIRN_SEARCH_SHARE, 30'000'000 / CAIRN_SEARCH_SHARE, 2, false});
    if (fit)
      smallest_made_ = std::move(fit);
    else
      part *= 2;
  }
}

}  // namespace cairn::plan
