#include "runtime/plan/search/one_budget.h"

#include <algorithm>

namespace cairn::plan {
namespace {

constexpr int64_t kQuickWork = 12'000;         // of a quick local search, per op
constexpr int64_t kFromAboveWork = 6'000'000;  // of the descent from a plan above the target
constexpr double kEnough = 1e-4;               // gap to the bound that ends a search
constexpr int64_t kFarBoundWork =
    60'000'000 / CAIRN_SEARCH_SHARE;  // of local search where the bound is far below
constexpr int64_t kSlowWork = 400'000'000 / CAIRN_SEARCH_SHARE;  // of ExcessRounds for a very slow plan
constexpr double kSlow = 0.1;                                    // above the bound: a quick search goes on
constexpr double kMuchFaster = .02;
constexpr double kWorthARound = 2e-3;                // of a plan's seconds: a smaller gain ends the rounds
constexpr double kFar = 1.5e-2, kFarOfChain = 3e-2;  // gaps to the bound that more work is spent on
constexpr int kMostRounds = 4;                       // rounds of local search

}  // namespace

std::optional<Fit> OneBudget::solve(int64_t budget, Effort effort) {
  fastest_.reset();
  came_down_ = false;
  if (effort != Effort::kWhole) return from_scratch(budget, effort);
  structure_.look();
  std::optional<Fit> fit = from_scratch(budget, effort);
  if (s_.p.links.empty()) try_greedy(fit, budget);
  rounds_.improve(fit, budget, kSlowWork, came_down_);
  // For budgets a little above the smallest one, structure may give no plan.
  const bool found = fit.has_value();
  for (const bool sent : {true, false}) {
    if (fit) break;
    const Fit* const lowest = sent ? smallest_.sent() : &smallest_.made();
    if (lowest && lowest->plan.arena_bytes <= budget) keep_faster(fit, from_smallest(*lowest, budget));
  }
  if (fit && !found) rounds_.improve(fit, budget, kSlowWork / 16, came_down_);
  // The exact search for offsets, for a candidate that would be much faster. It is not used where there is no plan: a
  // budget below smallest() is refused.
  if (fit && fastest_ && Search::worth_searching(*fastest_, fit))
    keep_faster(fit, s_.lay_out_exactly(*fastest_, budget));
  return fit;
}

// Replaces `fit` where greedy eviction is faster.
void OneBudget::try_greedy(std::optional<Fit>& fit, int64_t budget) {
  const double bound = s_.bound_seconds(budget);
  if (fit && fit->plan.predicted_seconds <= bound * (1 + kEnough)) return;
  int64_t target = budget;
  std::optional<Fit> found = structure_.greedy(budget, target);
  if (!found || (fit && fit->plan.predicted_seconds <= found->plan.predicted_seconds)) return;
  fit = std::move(found);
  came_down_ = false;
  improve_fit(*fit, target, budget, s_.bound_seconds_below(fit->plan.predicted_seconds, budget),
              Effort::kWhole, kMostRounds);
  remember_fastest(budget);
}

std::optional<Fit> OneBudget::from_scratch(int64_t budget, Effort effort) {
  if (least_bytes(s_.p, s_.index) > budget) return {};
  int64_t target = budget;
  double bound = s_.bound_seconds(budget, effort);
  const bool whole = effort == Effort::kWhole, quick = effort == Effort::kQuick;
  std::optional<Fit> best =
      structure_.closest(budget, bound, whole ? kTableWork : kQuickTableWork, effort, target);
  const auto is_slow = [&] { return !best || best->plan.predicted_seconds > bound * (1 + kSlow); };
  if (quick && is_slow()) best = structure_.closest(budget, bound, kTableWork, effort, target);
  const auto come_down = [&] {
    auto fit = brought_down_.fastest_within(budget);
    came_down_ =
        fit && (!best || fit->plan.predicted_seconds < best->plan.predicted_seconds * (1 - kMuchFaster));
    return fit;
  };
  const bool linked = !s_.p.links.empty();
  if (whole && !linked && brought_down_.possible() && is_slow()) {
    remember_fastest(budget);
    auto fit = come_down();
    if (came_down_) {
      remember_fastest(budget);
      return fit;
    }
    if (!best) return {};
    best = structure_.closest(budget, bound, kTableWork, effort, target);
  }
  if (best && whole && !structure_.chain())
    bound = s_.bound_seconds_below(best->plan.predicted_seconds, budget);
  // A quick search improves only plans that are far above the bound.
  if (best && (whole || (quick && is_slow())))
    improve_fit(*best, target, budget, bound, effort, quick ? 1 : kMostRounds);
  remember_fastest(budget);
  // With links, BroughtDown's plans are faster only where copies cannot be hidden.
  if (whole && linked && brought_down_.possible() && is_slow()) {
    keep_faster(best, come_down());
    remember_fastest(budget);
  }
  return best;
}

void OneBudget::remember_fastest(int64_t budget) {
  const Candidate* fastest = nullptr;
  for (const auto& [peak, candidate] : s_.archive.plans())
    if (s_.searched_capacity(candidate) <= budget) fastest = &candidate;
  if (fastest && (!fastest_ || fastest->cost.seconds < fastest_->cost.seconds)) fastest_ = *fastest;
}

// For budgets for which from_scratch() finds nothing: a search near the smallest plan.
Fit OneBudget::from_smallest(const Fit& smallest, int64_t budget) {
  Fit best = smallest;
  structure_.restart();
  for (const Pace& pace : s_.paces()) s_.try_retention(smallest.from.retention_points, pace);
  const double bound = s_.bound_seconds_below(best.plan.predicted_seconds, budget);
  improve_fit(best, budget, budget, bound, Effort::kWhole, kMostRounds);
  remember_fastest(budget);
  return best;
}

// Local search near the best plan, as long as a round gains much.
void OneBudget::improve_fit(Fit& best, int64_t target, int64_t budget, double bound, Effort effort,
                            int rounds) {
  if (s_.p.ops.size() > structure_.most_ops()) return;
  const auto ops = static_cast<int64_t>(s_.p.ops.size());
  for (int round = 0; round < rounds; ++round) {
    const Candidate* first = s_.archive.within(target);
    if (!first || best.plan.predicted_seconds <= bound * (1 + (round == 0 ? kGoodEnough : kGoodEnoughLater)))
      return;
    structure_.forget();
    const double before = first->cost.seconds;
    const bool far = best.plan.predicted_seconds > bound * (1 + (structure_.chain() ? kFarOfChain : kFar));
    const int64_t whole = !far || round == 0   ? kSearchWork
                          : structure_.chain() ? kFarBoundWork / 2
                                               : kFarBoundWork;
    const int64_t work = std::min(whole, effort == Effort::kQuick ? ops * kQuickWork : whole) / 2;
    if (far) search_from_above(target, work / 2);
    first = s_.archive.within(target);
    s_.local_search.anneal(*first, target, work);
    Candidate c = *s_.archive.within(target);
    s_.local_search.search(c, target, work);
    auto fit = s_.fastest_within(target, budget, kLayoutsPerRound);
    if (fit && fit->plan.predicted_seconds < best.plan.predicted_seconds) best = std::move(*fit);
    // Far above the bound, a long round that gained next to nothing is the last one, unless only the arena is too
    // high.
    const double found = best.plan.predicted_seconds, now = s_.archive.within(target)->cost.seconds;
    if (found > bound * (1 + kSlow) && round > 0 && now > before * (1 - kWorthARound) &&
        found < now * (1 + kGoodEnoughLater))
      return;
  }
}

// A faster plan whose peak is a little too high may be near one that fits.
void OneBudget::search_from_above(int64_t target, int64_t work) {
  const Candidate* best = nullptr;
  double least = 0;
  for (auto at = s_.archive.plans().upper_bound(target); at != s_.archive.plans().end(); ++at) {
    const double energy = s_.local_search.energy(at->second.cost.seconds, at->first, target);
    if (best && energy >= least) continue;
    best = &at->second;
    least = energy;
  }
  if (!best) return;
  const Candidate from = *best;
  Candidate c = from;
  if (s_.local_search.descend(c, target, kFromAboveWork)) s_.local_search.search(c, target, work / 2);
  s_.local_search.anneal(from, target, work);
}

}  // namespace cairn::plan
