// The smallest budget of a large problem, and the plan for it.
#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/plan/search/recursion.h"
#include "runtime/plan/search/search.h"

namespace cairn::plan {
namespace {

// Of annealing plans with their layouts, per aim on the way down.
constexpr int64_t kDownWork = 15'000'000 / CAIRN_SEARCH_SHARE;
// Of annealing peaks, before that of packed plans, which takes some 6 s.
constexpr int64_t kPeakWork = 200'000'000 / CAIRN_SEARCH_SHARE;
constexpr int64_t kPackedWork = 110'000'000 / CAIRN_SEARCH_SHARE;
constexpr int64_t kRoomParts = 32;  // room above peaks that are to be packed: such parts of the budget
constexpr int kSmallerPacked = 2;
// Less than the smallest plan's arena by such a part of it: the first aim of packed plans, and the last one but a page.
constexpr int64_t kFirstLess = 16, kLastLess = 32;
constexpr int kSmaller = 32;        // smaller budgets tried below the smallest plan
constexpr int64_t kFirstStep = 16;  // the first one is smaller by such a part

}  // namespace

const Fit& OneBudget::smallest() {
  effort_ = Effort::kWhole;
  const Fit* const sent = smallest_sent();
  if (sent && sent->plan.arena_bytes <= least_bytes(s_.p, s_.index)) return *sent;
  const Fit& made = smallest_made();
  return sent && sent->plan.arena_bytes < made.plan.arena_bytes ? *sent : made;
}

const Fit* OneBudget::smallest_sent() {
  if (s_.p.links.empty()) return nullptr;
  if (!smallest_sent_) {
    restart();
    for (const Pace& pace : s_.paces()) s_.try_retention(s_.everything_sent(), pace);
    smallest_sent_ = s_.lowest();
    closest_.reset();
  }
  return &*smallest_sent_;
}

const Fit& OneBudget::smallest_made() {
  if (smallest_made_) return *smallest_made_;
  if (prices_layouts()) {
    smallest_by_limits();
    return *smallest_made_;
  }
  look_at_stages();
  brought_down();
  restart();
  const auto least = [&](const auto& found_at) {
    int64_t high = s_.archive.plans().begin()->first - s_.index.persistent_bytes, low = 0;
    for (int round = 0; round < 12 && high - low > high / 64; ++round) {
      const int64_t room = low + (high - low) / 2;
      (found_at(room) ? high : low) = room;
    }
  };
  least([&](int64_t room) {
    RetentionPoints t;
    return backward() && recurse(s_.p, s_.index, s_.intervals, s_.rules, *stages_, room, t) &&
           s_.try_retention(t, {});
  });
  const auto shrink = [&] {
    if (s_.p.ops.size() > most_ops()) return;
    Candidate c = s_.archive.plans().begin()->second;
    s_.local_search.use_links(false);  // so that links do not make it larger
    s_.local_search.shrink(c, kSearchWork);
    if (!backward()) s_.local_search.anneal_down(least_bytes(s_.p, s_.index), kFarWork);
    s_.local_search.use_links(true);
  };
  if (s_.p.ops.size() <= most_ops())
    for (const RetentionPoints& t : s_.local_search.minimal()) s_.try_retention(t, {});
  shrink();
  const int64_t before = s_.archive.plans().begin()->first;
  for (Segments& segments : segments_)
    least([&](int64_t room) {
      const std::optional<RetentionPoints> t = segments.plan(room);
      return t && s_.try_retention(*t, {});
    });
  if (s_.archive.plans().begin()->first < before) shrink();
  for (const Candidate& c : brought_down()) s_.archive.add(c.retention_points, c.pace, c.cost);
  smallest_made_ = s_.lowest();
  const Candidate lowest = s_.archive.plans().begin()->second;
  if (const int64_t capacity = s_.searched_capacity(lowest); capacity < smallest_made_->plan.arena_bytes)
    if (auto fit = s_.lay_out_exactly(lowest, capacity)) smallest_made_ = std::move(fit);
  if (s_.places() && s_.p.ops.size() <= kSearched)
    smallest_made_ = s_.fit_of(
        s_.local_search.place_lower(s_.placed(*smallest_made_), least_bytes(s_.p, s_.index), kDownWork));
  // Exact: until one page less fails, which is asked first where there are no plans at all for that. Budgets that failed are known, so
  // steps stay between those and what fits.
  int64_t too_low = least_bytes(s_.p, s_.index) - 1;  // a peak that there is no plan for
  const auto within = [&](int64_t budget) {
    int64_t target = budget;
    std::optional<Fit> fit;
    if (budget > too_low) fit = closest(budget, s_.bound_seconds(budget), kTableWork, target, &too_low);
    return fit ? fit : laid_out_within(budget);
  };
  within(smallest_made_->plan.arena_bytes - kPageBytes);
  int64_t step = smallest_made_->plan.arena_bytes / kFirstStep, failed = least_bytes(s_.p, s_.index) - 1;
  for (int round = 0; round < kSmaller; ++round) {
    const int64_t arena = smallest_made_->plan.arena_bytes;
    if (arena - failed <= kPageBytes) break;
    step = std::clamp(step, kPageBytes, std::max(kPageBytes, (arena - failed) / 2));
    if (auto fit = within(arena - step)) {
      smallest_made_ = std::move(*fit);
      step *= 2;
    } else {
      failed = arena - step;
      step /= 4;
    }
  }
  // What holds more has other arenas.
  if (auto fit = from_segments(smallest_made_->plan.arena_bytes - kPageBytes))
    smallest_made_ = std::move(*fit);
  lower_packed();
  return *smallest_made_;
}

// solve() asks for packed plans, too: what they find for less is the smallest plan, until for a page less they find none.
void OneBudget::lower_packed() {
  if (!places()) return;
  const int64_t least = least_bytes(s_.p, s_.index);
  for (int64_t part = kFirstLess; part <= kLastLess && smallest_made_->plan.arena_bytes > least;) {
    const int64_t before = smallest_made_->plan.arena_bytes;
    auto fit = packed(std::max(least, before - before / part), 0);
    if (fit)
      smallest_made_ = std::move(fit);
    else
      part *= 2;
  }
  for (int round = 0; round < kSmallerPacked; ++round) {
    auto fit = packed(smallest_made_->plan.arena_bytes - kPageBytes, kMostRoom);
    if (!fit) return;
    smallest_made_ = std::move(fit);
  }
}

// A plan whose peak fits, whatever its arena, which then comes down together with the plan. If that leads nowhere, again from
// so many lower peaks.
std::optional<Fit> OneBudget::packed(int64_t budget, int64_t rooms) {
  if (least_bytes(s_.p, s_.index) > budget) return {};
  restart();
  Candidate from = s_.archive.plans().begin()->second;
  for (int64_t room = 0; room <= rooms; ++room) {
    const int64_t peak = budget - (budget - s_.index.persistent_bytes) / kRoomParts * room;
    s_.local_search.anneal_excess(from, peak, kPeakWork);
    const Candidate* within = s_.archive.within(peak);
    if (!within) return {};
    from = *within;
    const Placed placed =
        s_.local_search.anneal_packed(s_.placed({s_.lay_out(from, budget), from}), budget, kPackedWork);
    if (placed.height <= budget) return s_.fit_of(placed);
  }
  return {};
}

}  // namespace cairn::plan
