// Part of the search for one budget: from plans that are slow, or too high, to faster ones that fit.
#include <algorithm>
#include <memory>

#include "runtime/plan/search/search.h"

namespace cairn::plan {
namespace {

constexpr int64_t kRoundWork = 100'000'000 / CAIRN_SEARCH_SHARE;
constexpr int64_t kFallWork = 150'000'000 / CAIRN_SEARCH_SHARE;  // of a budget that falls
// Quarters of the budget that the plans it begins with may be above it.
constexpr int64_t kMoreRoom[] = {0, 1, 2, 4};
constexpr double kLeastGap = 1.5e-2, kWholeGap = .05;  // gaps that are worth a round, and all of its work
constexpr int64_t kHoleParts = 50;  // what is left free for holes of the layout: such a part
constexpr int kMostRounds = 4;
constexpr double kWorthMore = 5e-3;      // of a plan's seconds: a round that brings less is the last one
constexpr double kWorthMoreBeyond = .3;  // the same beyond the cliff
constexpr int kAttempts = 40;            // layouts per round

}  // namespace

// Where one peak counts for all, nothing changes near such a plan before its last full place has come down. Here plans go above
// the budget, at a price for each item. Rounds leave room for holes, but where the plan that they begin with has none. Work is in
// proportion to what there is to be gained.
void OneBudget::from_slow(std::optional<Fit>& fit, int64_t budget, int64_t work) {
  if (!backward() || s_.p.ops.size() > kSearched) return;
  const int64_t until = s_.evaluate.work() + work;
  const int64_t holes = (budget - s_.index.persistent_bytes) / kHoleParts;
  const auto anneal = [&](const Candidate& from, int64_t target, int64_t of_that,
                          LocalSearch::Prices prices = LocalSearch::kAdaptive) {
    s_.local_search.anneal_excess(from, target, of_that, prices);
    auto found = s_.fastest_within(budget, budget, kAttempts);
    if (found && (!fit || found->plan.predicted_seconds < fit->plan.predicted_seconds))
      fit = std::move(found);
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
  // A plan of segments that is fast and too high comes further than one that makes everything again for each op. In chains of blocks, which
  // have no other segments, it comes down with a budget that falls.
  if (beyond_cliff(fit) && stages_->chain && s_.p.links.empty()) {
    if (!fine_segments_)
      fine_segments_ = std::make_unique<Segments>(s_.p, s_.index, s_.intervals, s_.rules, kFineGroups);
    restart();
    for (const int64_t quarters : kMoreRoom)
      aim_with_segments(budget + (budget - s_.index.persistent_bytes) / 4 * quarters, *fine_segments_);
    anneal(least_energy(), budget, std::min(work, kFallWork), LocalSearch::kFalling);
  }
  if (beyond_cliff(fit) && !segments_.empty()) {
    restart();
    for (Segments& segments : segments_) aim_with_segments(budget, segments);
    anneal(least_energy(), budget - holes, std::min(work, 2 * kRoundWork));
  }
  for (int round = 0; fit && round < kMostRounds; ++round) {
    const double before = fit->plan.predicted_seconds;
    const double gap = before / s_.bound_seconds_below(before, budget) - 1;
    const auto wanted =
        static_cast<int64_t>(static_cast<double>(kRoundWork) * std::min(1.0, gap / kWholeGap));
    const int64_t left = std::min(wanted, until - s_.evaluate.work());
    if (gap <= kLeastGap || left < wanted / 2) return;
    const Candidate from = fit->from;
    restart();
    anneal(from, round % 2 == 0 && from.cost.peak_bytes <= budget - holes ? budget - holes : budget, left);
    const double worth = beyond_cliff(before) ? kWorthMoreBeyond : kWorthMore;
    if (fit->plan.predicted_seconds > before * (1 - worth)) return;
  }
}

}  // namespace cairn::plan
