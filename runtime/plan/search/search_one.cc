#include <algorithm>
#include <array>
#include <cstdlib>

#include "runtime/base/checked.h"
#include "runtime/plan/bound/bound.h"
#include "runtime/plan/search/recursion.h"
#include "runtime/plan/search/search.h"

namespace cairn::plan {
namespace {

constexpr size_t kSearched = 6000;          // ops of a problem that local search still does something for
constexpr int64_t kSearchWork = 6'000'000;  // of it, after the dynamic program
constexpr int64_t kTableWork = 12'000'000;  // steps of the dynamic program
constexpr size_t kOptions = 48;             // per stage
constexpr std::array<Lag, 2> kLags = {Lag{8, .05}, Lag{3, .1}};
constexpr double kGoodEnough = 1e-3, kGoodEnoughLater = 5e-3;  // gaps to the bound that end the search
constexpr double kSlow = 0.1;                                  // above the bound: a quick search goes on
constexpr int kLayouts = 8;                                    // tried per round
constexpr int kRounds = 4;                                     // of feedback from the real peak or arena
constexpr int kSmaller = 48;  // smaller budgets tried below the smallest plan

void keep_faster(std::optional<Fit>& best, std::optional<Fit> fit) {
  if (fit && (!best || fit->plan.predicted_seconds < best->plan.predicted_seconds)) best = std::move(fit);
}

}  // namespace

std::optional<Fit> OneBudget::solve(int64_t budget, Effort effort) {
  if (auto fit = from_scratch(budget, effort)) return fit;
  if (effort == Effort::kQuick) return {};
  if (smallest().plan.arena_bytes <= budget) return from_smallest(budget);
  return {};
}

std::optional<Fit> OneBudget::from_scratch(int64_t budget, Effort effort) {
  if (least_bytes(s_.p, s_.index) > budget) return {};
  const double bound = lower_bound_seconds(s_.p, s_.index, budget);
  s_.restart();
  int64_t target = budget;
  std::optional<Fit> best;
  for (int round = 0; round < kRounds && target > s_.index.persistent_bytes; ++round) {
    aim(target, bound);
    const Candidate* first = s_.archive.within(target);
    if (!first) break;
    const int64_t peak = first->cost.peak_bytes;
    int64_t over = 0;
    keep_faster(best, s_.fastest_within(target, budget, kLayouts, &over));
    if (over <= 0) break;
    target = peak - over;
  }
  // What comes nowhere near the bound says little.
  if (best && (effort == Effort::kWhole || best->plan.predicted_seconds > bound * (1 + kSlow)))
    improve_fit(*best, target, budget, bound);
  return best;
}

void OneBudget::look_at_stages() {
  if (stages_) return;
  stages_.emplace(s_.p, s_.index);
  sets_.push_back({s_.p, s_.index, s_.intervals, s_.rules, *stages_, -1, kOptions});
  if (!s_.p.links.empty()) sets_.push_back({s_.p, s_.index, s_.intervals, s_.rules, *stages_, 0, kOptions});
}

// Fills the archive with plans whose peak is close to the target.
void OneBudget::aim(int64_t target, double bound) {
  look_at_stages();
  aim_with(sets_[0], -1, {}, target);
  if (!s_.p.links.empty())
    for (const Lag& lag : kLags) aim_with(sets_[1], 0, lag, target);
  const Candidate* single = s_.archive.within(target);
  if (!single || single->cost.seconds > bound * (1 + kGoodEnoughLater)) deepen(target);
  if (s_.archive.within(target) || s_.p.ops.size() > kSearched) return;
  for (const RetentionPoints& t : s_.local_search.minimal()) s_.try_retention(t, {});
  Candidate c = s_.archive.plans().begin()->second;
  s_.local_search.descend(c, target);
}

// The table's peaks are a little too high or low: looks for the room at which the real one is the target.
void OneBudget::aim_with(const OptionSets& sets, int32_t link, Lag lag, int64_t target) {
  const int64_t wanted = target - s_.index.persistent_bytes;
  int64_t room = wanted, fits = 0, too_much = 0;
  double price = 0;
  for (int round = 0; round < (link < 0 ? 2 * kRounds : kRounds) && room > 0; ++round) {
    const Chosen chosen = choose_options(s_.p, *stages_, sets, room, link, lag, kTableWork, price);
    if (!chosen.found) break;
    const RetentionPoints t = s_.retention_of(sets, chosen);
    const Cost cost = s_.evaluate(t, {}, s_.sequence);
    if (!cost.valid) break;
    s_.archive.add(t, {}, cost);
    const int64_t spare = target - cost.peak_bytes;
    (spare >= 0 ? fits : too_much) = room;
    if (spare >= 0 && spare <= wanted / 1000) break;
    if (fits > 0 && too_much > 0 && std::abs(too_much - fits) <= wanted / 2000) break;
    room = fits > 0 && too_much > 0 ? (fits + too_much) / 2 : room + spare;
  }
}

// More levels of recompute.
void OneBudget::deepen(int64_t target) {
  int64_t room = target - s_.index.persistent_bytes;
  for (int round = 0; round < 2 * kRounds && room > 0; ++round) {
    RetentionPoints t;
    if (!recurse(s_.p, s_.index, s_.intervals, s_.rules, *stages_, room, t, &sets_[0])) return;
    const Cost cost = s_.evaluate(t, {}, s_.sequence);
    if (!cost.valid) return;
    s_.archive.add(t, {}, cost);
    if (cost.peak_bytes <= target) return;
    room -= cost.peak_bytes - target;
  }
}

const Fit& OneBudget::smallest() {
  if (smallest_) return *smallest_;
  look_at_stages();
  s_.restart();
  int64_t high = s_.archive.plans().begin()->first - s_.index.persistent_bytes, low = 0;
  for (int round = 0; round < 12 && high - low > high / 64; ++round) {
    const int64_t room = low + (high - low) / 2;
    RetentionPoints t;
    const bool found = recurse(s_.p, s_.index, s_.intervals, s_.rules, *stages_, room, t);
    (found && s_.try_retention(t, {}) ? high : low) = room;
  }
  if (s_.p.ops.size() <= kSearched) {
    for (const RetentionPoints& t : s_.local_search.minimal()) s_.try_retention(t, {});
    Candidate c = s_.archive.plans().begin()->second;
    s_.local_search.use_links(false);  // so that links do not make it larger
    s_.local_search.shrink(c, kSearchWork);
    s_.local_search.use_links(true);
  }
  smallest_ = s_.lowest();
  // Exact: until one page less fails, in growing steps.
  int64_t step = kPageBytes;
  for (int round = 0; round < kSmaller; ++round) {
    auto fit = from_scratch(smallest_->plan.arena_bytes - step);
    if (!fit && step == kPageBytes) break;
    step = fit ? 2 * step : kPageBytes;
    if (fit) smallest_ = std::move(fit);
  }
  return *smallest_;
}

// Between the smallest budget and those that from_scratch() masters: what is faster near the smallest plan.
Fit OneBudget::from_smallest(int64_t budget) {
  Fit best = smallest();
  s_.restart();
  s_.archive.add(best.from.retention_points, best.from.pace, best.from.cost);
  improve_fit(best, budget, budget, lower_bound_seconds(s_.p, s_.index, budget));
  return best;
}

// Searches near the best as long as that gains much.
void OneBudget::improve_fit(Fit& best, int64_t target, int64_t budget, double bound) {
  if (s_.p.ops.size() > kSearched) return;
  for (int round = 0; round < kRounds; ++round) {
    const Candidate* first = s_.archive.within(target);
    if (!first || best.plan.predicted_seconds <= bound * (1 + (round == 0 ? kGoodEnough : kGoodEnoughLater)))
      return;
    s_.local_search.anneal(*first, target, kSearchWork / 2);
    Candidate c = *s_.archive.within(target);
    s_.local_search.search(c, target, kSearchWork / 2);
    auto fit = s_.fastest_within(target, budget, kLayouts);
    if (fit && fit->plan.predicted_seconds < best.plan.predicted_seconds) best = std::move(*fit);
  }
}

}  // namespace cairn::plan
