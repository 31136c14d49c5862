// Part of the search for one budget: from plans that are slow, or too high, to faster ones that fit.
#include <algorithm>
#include <limits>
#include <memory>

#include "runtime/plan/search/search.h"

namespace cairn::plan {
namespace {

constexpr int64_t kRoundWork = 100'000'000 / CAIRN_SEARCH_SHARE;
constexpr int64_t kFallWork = 150'000'000 / CAIRN_SEARCH_SHARE;  // of a budget that falls
// Quarters of the budget that the plans it begins with may be above it.
constexpr int64_t kMoreRoom[] = {0, 1, 2, 4};
// Near what fits many short rounds lead further than a few long ones: they get longer after so many that brought little.
// Not where the bound is far away; that of a chain is near, and so is what more rounds would find.
constexpr int64_t kShortRound = 25'000'000 / CAIRN_SEARCH_SHARE, kLongestRound = 4 * kShortRound;
constexpr int kInVain = 2;
constexpr int kLines = 2;  // of rounds
constexpr double kFarFromBound = .1, kFarInChains = .05;
constexpr double kLeastGap = 1.5e-2, kWholeGap = .03;  // gaps that are worth a round, and all of its work
constexpr int64_t kHoleParts = 50;               // what is left free for holes of the layout: such a part
constexpr double kFarDown = .1, kNearDown = .3;  // gaps of what came down, for annealing from segments
constexpr double kWorthMore = 2e-3;              // of a plan's seconds: a round that brings less was in vain
constexpr double kWorthMoreBeyond = .3;          // the same beyond the cliff
constexpr int kAttempts = 40;                    // layouts per round

// Of the way down.
constexpr int64_t kParts = 50;  // steps down to a target: such parts of what is alive
constexpr int64_t kStepWork = 2'000'000 / CAIRN_SEARCH_SHARE;  // of each kind of search, per step
constexpr int kSteeper = 12;  // times that the arena may ask for a lower target

}  // namespace

// Where one peak counts for all, nothing changes near such a plan before its last full place has come down. Here plans go above
// the budget, at a price for each item. Rounds leave room for holes, but where the plan that they begin with has none.
void OneBudget::from_slow(std::optional<Fit>& fit, int64_t budget, int64_t work) {
  if (!backward() || s_.p.ops.size() > kSearched) return;
  const int64_t until = s_.evaluate.work() + work;
  const int64_t holes = (budget - s_.index.persistent_bytes) / kHoleParts;
  std::optional<Fit> line;  // what the rounds that follow each other have come to
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
  // A plan of segments that is fast and too high comes further than one that makes everything again for each op. In chains of blocks, which
  // have no other segments, it comes down with a budget that falls.
  if (!came_down_ && beyond_cliff(fit) && stages_->chain && s_.p.links.empty()) {
    if (!fine_segments_)
      fine_segments_ = std::make_unique<Segments>(s_.p, s_.index, s_.intervals, s_.rules, kFineGroups);
    restart();
    for (const int64_t quarters : kMoreRoom)
      aim_with_segments(budget + (budget - s_.index.persistent_bytes) / 4 * quarters, *fine_segments_);
    anneal(least_energy(), budget, std::min(work, kFallWork), LocalSearch::kFalling);
  }
  if (came_down_ && beyond_cliff(fit)) {
    restart();
    if (const auto lower = held_within(budget - 2 * holes)) anneal(*lower, budget - holes, kRoundWork);
  }
  // What came down is left to that only where annealing may still lead to the bound.
  const auto within_reach = [&] {
    const double gap =
        fit->plan.predicted_seconds / s_.bound_seconds_below(fit->plan.predicted_seconds, budget) - 1;
    return gap > kFarDown && gap < kNearDown;
  };
  if ((came_down_ ? within_reach() : beyond_cliff(fit)) && !segments_.empty()) {
    restart();
    for (Segments& segments : segments_) aim_with_segments(budget, segments);
    anneal(least_energy(), budget - holes, std::min(work, 2 * kRoundWork));
  }
  const double far = stages_ && stages_->chain ? kFarInChains : kFarFromBound;
  const std::optional<Fit> start = fit;
  uint64_t round = 0;
  const auto gap_of_line = [&] {
    const double seconds = line->plan.predicted_seconds;
    return seconds / s_.bound_seconds_below(seconds, budget) - 1;
  };
  // Far from the bound longer rounds seldom lead on.
  const auto run_rounds = [&] {
    int64_t length = kShortRound;
    for (int in_vain = 0; length <= kLongestRound; ++round) {
      const double before = line->plan.predicted_seconds, gap = gap_of_line();
      const auto wanted = static_cast<int64_t>(static_cast<double>(length) * std::min(1.0, gap / kWholeGap));
      const int64_t left = std::min(wanted, until - s_.evaluate.work());
      if (gap <= kLeastGap || left < wanted / 2) return;
      const Candidate from = line->from;
      restart();
      s_.local_search.use_numbers(round);
      anneal(from, round % 2 == 0 && from.cost.peak_bytes <= budget - holes ? budget - holes : budget, left);
      const double worth = beyond_cliff(before) ? kWorthMoreBeyond : kWorthMore;
      if (line->plan.predicted_seconds <= before * (1 - worth)) {
        in_vain = 0;
      } else if (++in_vain == kInVain) {
        if (gap > far) return;
        in_vain = 0;
        length *= 2;
      }
    }
  };
  // Rounds end where no change leads on; from where they began, others lead elsewhere.
  for (int lines = 0; fit && lines < kLines; ++lines) {
    line = start;
    run_rounds();
    if (gap_of_line() <= kWholeGap) break;
  }
}

// Whether the archive has a plan within the target in the end. Steps that fail are halved.
bool OneBudget::walk_down(int64_t target) {
  int64_t peak = std::numeric_limits<int64_t>::max(), parts = kParts;
  for (const auto& [bytes, candidate] : s_.archive.plans())
    if (!beyond_cliff(candidate.cost.seconds)) {
      peak = bytes;
      break;
    }
  if (peak == std::numeric_limits<int64_t>::max()) return false;
  while (peak > target) {
    const Candidate from = *s_.archive.within(peak);
    const int64_t next =
        std::max(target, peak - std::max<int64_t>(1, (peak - s_.index.persistent_bytes) / parts));
    Candidate c = from;
    if (s_.local_search.descend(c, next, kStepWork)) s_.local_search.search(c, next, kStepWork);
    const Candidate* found = s_.archive.within(next);
    s_.local_search.anneal(found ? *found : from, next, kStepWork);
    found = s_.archive.within(next);
    if (found)
      peak = next;
    else if ((parts *= 2) > kMostParts)
      return false;
  }
  return s_.archive.within(target) != nullptr;
}

// From what structure gives, which needs more, to the budget, a little at a time.
std::optional<Fit> OneBudget::from_above(int64_t budget) {
  restart();
  std::optional<Fit> best;
  int64_t target = budget;
  for (const bool fine : {false, true}) {
    if (!beyond_cliff(best)) break;
    if (fine)
      aim_with_segments(target, *fine_segments_);
    else
      for (Segments& segments : segments_) aim_with_segments(target, segments);
    for (int round = 0; round < kSteeper && walk_down(target); ++round) {
      const int64_t peak = s_.archive.within(target)->cost.peak_bytes;
      int64_t over = 0;
      keep_faster(best, s_.fastest_within(target, budget, kLayouts, &over));
      if (over <= 0) break;
      target = peak - std::min(over, peak / kMostParts);
    }
  }
  return best;
}

}  // namespace cairn::plan
