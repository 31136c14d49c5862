#include <algorithm>
#include <array>
#include <cstdlib>

#include "runtime/base/checked.h"
#include "runtime/plan/bound/bound.h"
#include "runtime/plan/search/recursion.h"
#include "runtime/plan/search/search.h"

namespace cairn::plan {
namespace {

// Of annealing plans with their layouts, one after the other.
constexpr std::array<int64_t, 2> kPlacedWork = {150'000'000 / CAIRN_SEARCH_SHARE,
                                                200'000'000 / CAIRN_SEARCH_SHARE};
constexpr int64_t kRepackedWork = 60'000'000 / CAIRN_SEARCH_SHARE;  // of a packed plan, once more
constexpr int64_t kQuickWork = 12'000;                              // per op
constexpr int64_t kDescentWork = 6'000'000;                         // where nothing fits yet
constexpr int64_t kQuickDescent = 500;                              // per op, of a search that is not whole
constexpr size_t kOptions = 48, kManyOptions = 96;  // per stage; with a link there are more worth having
// What a byte that lags costs depends on how scarce the link is, which only the plans tell.
constexpr std::array<Lag, 4> kLags = {Lag{8, .05}, Lag{3, .1}, Lag{8, .25}, Lag{8, .6}};
constexpr double kQuickEnough = 1e-2;  // above the bound: where a quick search tries no other one
constexpr double kGoodEnough = 1e-3, kGoodEnoughLater = 5e-3;  // gaps to the bound that end the search
constexpr double kSlow = 0.1;                                  // above the bound: a quick search goes on
constexpr double kWithinReach = 0.3;                           // above the bound: long annealing leads on
constexpr double kCliff = 3;                                   // times the seconds of keeping everything
constexpr double kMuchFaster = .02;
constexpr double kWorthARound = 2e-3;                            // of a plan's seconds
constexpr double kFar = 1.5e-2, kFarOfChain = 3e-2;              // gaps that more work is spent on
constexpr std::array<int32_t, 2> kGroups = {32, 96};             // of Segments
constexpr int64_t kSlowWork = 400'000'000 / CAIRN_SEARCH_SHARE;  // of from_slow()
constexpr double kFarFaster = 2;  // times: what led so far leaves out other ways
constexpr int64_t kHoldWork = 30'000'000 / CAIRN_SEARCH_SHARE;
constexpr int kNearRounds = 2, kNearLayouts = 40;  // of the search near the smallest plan
constexpr int64_t kTargets = 3;                    // that it aims at
constexpr int kRounds = 4;                         // of feedback from the real peak or arena
constexpr int kLongRounds = 2;  // of improvement: from this one on, if it is still far then

}  // namespace

bool OneBudget::walks() const { return !stages_->chain && backward() && s_.p.ops.size() <= kSearched; }

bool OneBudget::beyond_cliff(double seconds) const { return seconds > kCliff * s_.index.total_seconds; }

bool OneBudget::beyond_cliff(const std::optional<Fit>& fit) const {
  return !fit || beyond_cliff(fit->plan.predicted_seconds);
}

// From what comes closest to a target down to it.
int64_t OneBudget::descent_work() const {
  if (effort_ != Effort::kWhole)
    return std::min(kDescentWork, static_cast<int64_t>(s_.p.ops.size()) * kQuickDescent);
  return stages_->chain ? LocalSearch::kUnlimited : kDescentWork;
}

size_t OneBudget::most_ops() const { return stages_->chain ? kSearched : kSearchedGraphs; }

std::optional<Fit> OneBudget::solve(int64_t budget, Effort effort) {
  fastest_.reset();
  came_down_ = false;
  effort_ = effort;
  if (effort != Effort::kWhole) return from_scratch(budget, effort, kRounds);
  if (prices_layouts()) return solve_by_limits(budget);
  look_at_stages();
  // What is beyond the cliff after a round is better left to the ways below.
  std::optional<Fit> fit = from_scratch(budget, effort, walks() ? 1 : kRounds);
  const double first = fit ? fit->plan.predicted_seconds : 0;
  const auto slow = [&] {
    return !fit || fit->plan.predicted_seconds > (1 + kSlow) * s_.bound_seconds(budget);
  };
  double packed_seconds = 0;
  if (places()) {
    anneal_placed(fit, budget, kPlacedWork[0]);
    auto other = packed(budget, fit ? 0 : kMostRoom);
    if (other) packed_seconds = other->plan.predicted_seconds;
    keep_faster(fit, std::move(other));
  }
  const double scratch = fit ? fit->plan.predicted_seconds : 0;
  // What the way down finds is faster to improve than what is beyond the cliff. Where arenas of what came down do not fit, those of other
  // ways from segments do not either: the smallest plan is what there is.
  std::optional<Fit> walked;
  const bool is_there =
      !came_down_ && walks() && beyond_cliff(fit) && (fit || smallest().plan.arena_bytes <= budget);
  const bool only_smallest = is_there && !fit && comes_down();
  const bool first_down = is_there && !only_smallest;
  if (first_down) keep_faster(fit, walked = from_above(budget));
  if (!only_smallest) from_slow(fit, budget, kSlowWork);
  const double annealed = fit ? fit->plan.predicted_seconds : 0;
  // Where annealing led far, the way down leads no further.
  const bool led_far = fit && !beyond_cliff(fit) && annealed * kFarFaster < scratch;
  if (walks() && slow() && !first_down && !only_smallest && !led_far)
    keep_faster(fit, walked = from_above(budget));
  const bool led_nowhere = !walked;
  // Little above the smallest budget structure may give nothing, or what only just fits.
  for (const bool sent : {true, false}) {
    if (came_down_ || !beyond_cliff(fit) || (fit && !walks())) break;
    const Fit* const lowest = sent ? smallest_sent() : &smallest_made();
    if (!lowest || lowest->plan.arena_bytes > budget) continue;
    // More room to hold values in is not always better: aims lower as well, as for a smaller budget.
    const bool both = walks() && led_nowhere;
    const int64_t lower = budget - (budget - lowest->plan.arena_bytes) / 2;
    for (const Effort how : {Effort::kQuick, Effort::kWhole}) {
      if (how == Effort::kQuick && !both) continue;
      for (const int64_t aim : {budget, lower})
        if (beyond_cliff(fit) && (aim == budget || (both && budget - aim >= kPageBytes)))
          keep_faster(fit, from_smallest(*lowest, aim, fit, how));
    }
  }
  // None of these ways led far.
  if (!came_down_ && walks() && beyond_cliff(fit) && first > 0 &&
      fit->plan.predicted_seconds * (1 + kSlow) > first)
    keep_faster(fit, from_scratch(budget, effort, kRounds));
  if (fit && fit->plan.predicted_seconds != annealed)
    from_slow(fit, budget, stages_->chain ? kSlowWork / 16 : kSlowWork / 2);
  // What was packed last is improved by packing, too.
  if (fit && fit->plan.predicted_seconds == packed_seconds)
    keep_faster(fit, s_.fit_of(s_.local_search.anneal_packed(s_.placed(*fit), budget, kRepackedWork, true)));
  if (places()) anneal_placed(fit, budget, kPlacedWork[1]);
  // What is less than smallest() is refused, whatever else could be found for it.
  if (fit && fastest_ && Search::worth_searching(*fastest_, fit))
    keep_faster(fit, s_.lay_out_exactly(*fastest_, budget));
  return fit;
}

bool OneBudget::places() const { return s_.places() && s_.p.ops.size() <= kSearched; }

void OneBudget::anneal_placed(std::optional<Fit>& fit, int64_t budget, int64_t work) {
  if (fit) keep_faster(fit, s_.fit_of(s_.local_search.anneal_placed(s_.placed(*fit), budget, work)));
}

// rounds_beyond: of improvement, as long as that ends beyond the cliff.
std::optional<Fit> OneBudget::from_scratch(int64_t budget, Effort effort, int rounds_beyond) {
  if (least_bytes(s_.p, s_.index) > budget) return {};
  int64_t target = budget;
  double bound = s_.bound_seconds(budget, effort);
  const bool whole = effort == Effort::kWhole, quick = effort == Effort::kQuick;
  std::optional<Fit> best = closest(budget, bound, whole ? kTableWork : kQuickTableWork, target);
  const auto is_slow = [&] { return !best || best->plan.predicted_seconds > bound * (1 + kSlow); };
  if (quick && is_slow()) best = closest(budget, bound, kTableWork, target);
  const auto come_down = [&] {
    auto fit = from_segments(budget);
    came_down_ =
        fit && (!best || fit->plan.predicted_seconds < best->plan.predicted_seconds * (1 - kMuchFaster));
    return fit;
  };
  const bool linked = !s_.p.links.empty();
  if (whole && !linked && comes_down() && is_slow()) {
    remember_fastest(budget);
    auto fit = come_down();
    if (came_down_) {
      remember_fastest(budget);
      return fit;
    }
    if (!best) return {};
    best = closest(budget, bound, kTableWork, target);
  }
  if (best && whole && !stages_->chain) bound = s_.bound_seconds_below(best->plan.predicted_seconds, budget);
  // What comes nowhere near the bound says little.
  if (best && (whole || (quick && is_slow())))
    improve_fit(*best, target, budget, bound, effort, quick ? 1 : kRounds, rounds_beyond);
  remember_fastest(budget);
  // With links, what came down is often the slower one, and much faster where copies cannot be hidden.
  if (whole && linked && comes_down() && is_slow()) {
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

// The best of what structure gives, before it is improved. target: the peak whose arenas fit. too_low: the highest peak known
// that no plan was found for; nothing is looked for below.
std::optional<Fit> OneBudget::closest(int64_t budget, double bound, int64_t table_work, int64_t& target,
                                      int64_t* too_low) {
  const bool whole = effort_ == Effort::kWhole;
  if (closest_ && closest_->budget == budget && closest_->table_work == table_work &&
      closest_->whole == whole) {
    target = closest_->target;
    return closest_->fit;
  }
  restart();
  target = budget;
  std::optional<Fit> best;
  for (int round = 0; round < kRounds && target > s_.index.persistent_bytes; ++round) {
    if (too_low && target <= *too_low) break;
    aim(target, bound, table_work);
    const Candidate* first = s_.archive.within(target);
    if (!first && too_low) *too_low = target;
    if (!first) break;
    const int64_t peak = first->cost.peak_bytes;
    int64_t over = 0;
    keep_faster(best, s_.fastest_within(target, budget, kLayouts, &over));
    if (over <= 0) break;
    target = peak - over;
  }
  if (!too_low) closest_ = Closest{budget, table_work, target, whole, best};
  return best;
}

void OneBudget::restart() {
  closest_.reset();
  s_.restart();
}

void OneBudget::look_at_stages() {
  if (stages_) return;
  stages_.emplace(s_.p, s_.index);
  if (!stages_->chain) {
    s_.local_search.be_thorough();
    for (const int32_t groups : kGroups)
      if (backward()) segments_.emplace_back(s_.p, s_.index, s_.intervals, s_.rules, groups);
    if (walks())
      fine_segments_ = std::make_unique<Segments>(s_.p, s_.index, s_.intervals, s_.rules, kFineGroups);
  }
  sets_.push_back({s_.p, s_.index, s_.intervals, s_.rules, *stages_, -1, kOptions});
  if (s_.p.links.empty()) return;
  const int32_t link = widest_link(s_.p, s_.index);
  sets_.push_back({s_.p, s_.index, s_.intervals, s_.rules, *stages_, link, kManyOptions});
}

// Fills the archive with plans whose peak is close to the target.
void OneBudget::aim(int64_t target, double bound, int64_t table_work) {
  look_at_stages();
  const auto is_above = [&](double gap) {
    const Candidate* const found = s_.archive.within(target);
    return !found || found->cost.seconds > bound * (1 + gap);
  };
  // Quickly, not without links where those serve well: that is slower.
  const bool linked_first = !s_.p.links.empty() && table_work < kTableWork;
  if (!linked_first) aim_with(sets_[0], -1, {}, target, table_work);
  if (!s_.p.links.empty()) {
    const int32_t link = widest_link(s_.p, s_.index);
    // The table is coarse: fewer options may lead to a faster plan.
    if (effort_ == Effort::kWhole && sets_.size() < 3)
      sets_.push_back({s_.p, s_.index, s_.intervals, s_.rules, *stages_, link, kOptions});
    for (const Lag& lag : kLags) {
      aim_with(sets_[1], link, lag, target, table_work);
      if (!is_above(effort_ == Effort::kWhole ? kGoodEnough : kQuickEnough)) break;
      if (effort_ == Effort::kWhole) aim_with(sets_[2], link, lag, target, table_work);
    }
  }
  if (linked_first && is_above(kFarOfChain)) aim_with(sets_[0], -1, {}, target, table_work);
  if (!s_.p.links.empty() && !stages_->chain && is_above(kFarOfChain))
    aim_with_longest_idle(s_.rules.base, target);
  // Where the link keeps up, nothing need be made again.
  if (!s_.p.links.empty() && effort_ == Effort::kWhole && is_above(kFarOfChain))
    s_.send_around_full({s_.rules.base, {}, {}}, target);
  if (is_above(kGoodEnoughLater)) {
    if (backward()) deepen(target);
    for (Segments& segments : segments_) aim_with_segments(target, segments);
  }
  if (s_.archive.within(target) || s_.p.ops.size() > most_ops()) return;
  for (const RetentionPoints& t : s_.local_search.minimal()) s_.try_retention(t, {});
  Candidate c = s_.archive.plans().begin()->second;
  if (s_.local_search.descend(c, target, descent_work()) || stages_->chain) return;
  const auto lowest = [&] { return s_.archive.plans().begin()->first; };
  for (int64_t before = INT64_MAX; lowest() > target && before - lowest() > before / 500;) {
    before = lowest();
    s_.local_search.anneal(s_.archive.plans().begin()->second, target, kDescentWork);
  }
}

// The table's peaks are a little too high or low: looks for the room at which the real one is the target.
void OneBudget::aim_with(const OptionSets& sets, int32_t link, Lag lag, int64_t target, int64_t table_work) {
  const int64_t wanted = target - s_.index.persistent_bytes;
  int64_t room = wanted, fits = 0, too_much = 0;
  double price = 0;
  for (int round = 0; round < (link < 0 ? 2 * kRounds : kRounds) && room > 0; ++round) {
    const Chosen chosen = choose_options(s_.p, *stages_, sets, room, link, lag, table_work, price);
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

// Between the smallest budget and those that from_scratch() masters: the smallest plan with whatever there is room to
// hold besides, and what is near that, or near the best one so far. Quick: with few layouts, which take most of the time where
// none fits, and no longer than it takes to see that it stays beyond the cliff.
Fit OneBudget::from_smallest(const Fit& smallest, int64_t budget, const std::optional<Fit>& there_is,
                             Effort effort) {
  Fit best = smallest;
  restart();
  const bool quick = effort == Effort::kQuick;
  const Candidate lowest = best.from;
  // Also in less, where an arena is more likely to fit.
  const int64_t more = budget - lowest.cost.peak_bytes;
  const bool down = !backward() && s_.p.ops.size() <= most_ops();
  for (int64_t part = 0; down && part < kTargets; ++part)
    s_.local_search.anneal_down(budget - more / kTargets * part, kFarWork / 4);
  for (const Pace& pace : s_.paces()) s_.try_retention(lowest.retention_points, pace);
  if (walks()) {
    for (int64_t part = 0; part < kTargets && part <= more; ++part) {
      Candidate c = lowest;
      s_.local_search.hold_longer(c, budget - more / kTargets * part, kHoldWork);
      if (there_is && there_is->plan.predicted_seconds <= c.cost.seconds) break;
    }
    if (there_is) s_.archive.add(there_is->from.retention_points, there_is->from.pace, there_is->from.cost);
  }
  if (walks() || down)
    if (auto fit = s_.fastest_within(budget, budget, quick ? kLayouts : kNearLayouts)) best = std::move(*fit);
  const int rounds = walks() ? kNearRounds : kRounds;
  const double bound = s_.bound_seconds_below(best.plan.predicted_seconds, budget);
  improve_fit(best, budget, budget, bound, Effort::kWhole, rounds, quick ? 1 : rounds);
  std::optional<Fit> fit = std::move(best);
  if (walks() && !(quick && beyond_cliff(fit)))
    keep_faster(fit, s_.fastest_within(budget, budget, kNearLayouts));
  remember_fastest(budget);
  return *fit;
}

// Searches near the best as long as that gains much. rounds_beyond: as long as it stays beyond the cliff.
void OneBudget::improve_fit(Fit& best, int64_t target, int64_t budget, double bound, Effort effort,
                            int rounds, int rounds_beyond) {
  if (s_.p.ops.size() > most_ops()) return;
  const auto ops = static_cast<int64_t>(s_.p.ops.size());
  for (int round = 0; round < rounds; ++round) {
    if (round >= rounds_beyond && beyond_cliff(best.plan.predicted_seconds)) return;
    const Candidate* first = s_.archive.within(target);
    if (!first || best.plan.predicted_seconds <= bound * (1 + (round == 0 ? kGoodEnough : kGoodEnoughLater)))
      return;
    closest_.reset();
    const double before = first->cost.seconds;
    const bool far = best.plan.predicted_seconds > bound * (1 + (stages_->chain ? kFarOfChain : kFar));
    const int64_t whole = !far || round == 0 ? kSearchWork : stages_->chain ? kFarWork / 2 : kFarWork;
    const int64_t work = std::min(whole, effort == Effort::kQuick ? ops * kQuickWork : whole) / 2;
    const bool near = best.plan.predicted_seconds < bound * (1 + kWithinReach);
    const bool annealed_long = far && near && round >= kLongRounds && !stages_->chain;
    if (far && !annealed_long) search_from_above(target, work / 2);
    first = s_.archive.within(target);
    s_.local_search.anneal(*first, target, annealed_long ? kLongWork : work,
                           annealed_long ? LocalSearch::kHotter : LocalSearch::kHot);
    Candidate c = *s_.archive.within(target);
    s_.local_search.search(c, target, work);
    auto fit = s_.fastest_within(target, budget, annealed_long ? kNearLayouts : kLayouts);
    if (fit && fit->plan.predicted_seconds < best.plan.predicted_seconds) best = std::move(*fit);
    // Where the bound says little, a round of much work that brought next to nothing leaves the rest to one
    // long annealing, unless it is the arena that is in the way.
    const double found = best.plan.predicted_seconds, now = s_.archive.within(target)->cost.seconds;
    if (found > bound * (1 + kSlow) && round > 0 && now > before * (1 - kWorthARound) &&
        found < now * (1 + kGoodEnoughLater)) {
      if (!near || annealed_long || stages_->chain) return;
      round = std::max(round, kLongRounds - 1);
    }
  }
}

// What does not fit by little, and is faster, may be near a plan that fits.
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
  if (s_.local_search.descend(c, target, kDescentWork)) s_.local_search.search(c, target, work / 2);
  s_.local_search.anneal(from, target, work);
}

}  // namespace cairn::plan
