#include "runtime/plan/search/excess_rounds.h"

#include <algorithm>

namespace cairn::plan {
namespace {

constexpr int64_t kRoundWork = 100'000'000 / CAIRN_SEARCH_SHARE;
constexpr int64_t kFallWork = 150'000'000 / CAIRN_SEARCH_SHARE;  // of annealing with a falling budget
// Peaks of the first plans may be above the budget by so many quarters of it.
constexpr int64_t kMoreRoom[] = {0, 1, 2, 4};
// Many short rounds gain more than a few long ones. After kInVain rounds that gained little, rounds become longer;
// far above the bound they end instead.
constexpr int64_t kShortRound = 25'000'000 / CAIRN_SEARCH_SHARE, kLongestRound = 4 * kShortRound;
constexpr int kInVain = 2;
constexpr int kLines = 2;  // series of rounds from the same start, with other random numbers
constexpr double kFarFromBound = .1, kFarInChains = .05;
// Gaps to the bound that are worth a round, and all of its work.
constexpr double kLeastGap = 1.5e-2, kWholeGap = .03;
constexpr int64_t kHoleParts = 50;       // such a part of the budget remains free for holes of the layout
constexpr double kWorthMore = 2e-3;      // of a plan's seconds: a round that gains less was in vain
constexpr double kWorthMoreBeyond = .3;  // the same share for a very slow plan
constexpr int kAttempts = 40;            // layouts tried per round

}  // namespace

// Plans may go above the budget here, at a price for each item. Every other round leaves room for holes of the
// layout, if the plan that it begins with does.
void ExcessRounds::improve(std::optional<Fit>& fit, int64_t budget, int64_t work, bool came_down) {
  if (!structure_.backward() || s_.p.ops.size() > kMostSearchedOps) return;
  const int64_t until = s_.evaluate.work() + work;
  const int64_t holes = (budget - s_.index.persistent_bytes) / kHoleParts;
  std::optional<Fit> line;  // the best plan of the present series of rounds
  const auto anneal = [&](const Candidate& from, int64_t target, int64_t of_that,
                          LocalSearch::Prices prices = LocalSearch::kAdaptive) {
    s_.local_search.anneal_excess(from, target, of_that, prices);
    std::optional<Fit> found = s_.fastest_within(budget, budget, kAttempts);
    keep_faster(fit, found);
    keep_faster(line, std::move(found));
  };
  const auto least_energy = [&] {
    const auto energy = [&](const auto& plan) {
      return s_.local_search.energy(plan.second.cost.seconds, plan.first, budget);
    };
    const auto& plans = s_.archive.plans();
    return Candidate(std::min_element(plans.begin(), plans.end(), [&](const auto& a, const auto& b) {
                       return energy(a) < energy(b);
                     })->second);
  };
  // Chains of blocks: a fast plan of segments with too high a peak is a better start than one that recomputes
  // everything for each op. It is annealed with a falling budget.
  if (!came_down && s_.very_slow(fit) && structure_.chain() && s_.p.links.empty()) {
    structure_.restart();
    for (const int64_t quarters : kMoreRoom)
      structure_.aim_with_segments(budget + (budget - s_.index.persistent_bytes) / 4 * quarters,
                                   structure_.fine_segments());
    anneal(least_energy(), budget, std::min(work, kFallWork), LocalSearch::kFalling);
  }
  if (came_down && s_.very_slow(fit)) {
    structure_.restart();
    if (const auto lower = brought_down_.held_within(budget - 2 * holes))
      anneal(*lower, budget - holes, kRoundWork);
  }
  const double far = structure_.chain() ? kFarInChains : kFarFromBound;
  const std::optional<Fit> start = fit;
  uint64_t round = 0;
  const auto gap_of_line = [&] {
    const double seconds = line->plan.predicted_seconds;
    return seconds / s_.bound_seconds_below(seconds, budget) - 1;
  };
  // Far above the bound, longer rounds seldom find more.
  const auto run_rounds = [&] {
    int64_t length = kShortRound;
    for (int in_vain = 0; length <= kLongestRound; ++round) {
      const double before = line->plan.predicted_seconds, gap = gap_of_line();
      const auto wanted = static_cast<int64_t>(static_cast<double>(length) * std::min(1.0, gap / kWholeGap));
      const int64_t left = std::min(wanted, until - s_.evaluate.work());
      if (gap <= kLeastGap || left < wanted / 2) return;
      const Candidate from = line->from;
      structure_.restart();
      s_.local_search.use_numbers(round);
      anneal(from, round % 2 == 0 && from.cost.peak_bytes <= budget - holes ? budget - holes : budget, left);
      const double worth = s_.very_slow(before) ? kWorthMoreBeyond : kWorthMore;
      if (line->plan.predicted_seconds <= before * (1 - worth)) {
        in_vain = 0;
      } else if (++in_vain == kInVain) {
        if (gap > far) return;
        in_vain = 0;
        length *= 2;
      }
    }
  };
  // A series ends when no change helps. A second series from the same start uses other random numbers.
  for (int lines = 0; fit && lines < kLines; ++lines) {
    line = start;
    run_rounds();
    if (gap_of_line() <= kWholeGap) break;
  }
}

}  // namespace cairn::plan
