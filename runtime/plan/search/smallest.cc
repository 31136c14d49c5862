#include "runtime/plan/search/smallest.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/plan/structure/recursion.h"

namespace cairn::plan {
namespace {

constexpr int kSmaller = 32;        // smaller budgets tried below the smallest plan
constexpr int64_t kFirstStep = 16;  // the first one is smaller than the plan by such a part of it

}  // namespace

const Fit& Smallest::plan() {
  const Fit* const sent = this->sent();
  if (sent && sent->plan.arena_bytes <= least_bytes(s_.p, s_.index)) return *sent;
  const Fit& made = this->made();
  return sent && sent->plan.arena_bytes < made.plan.arena_bytes ? *sent : made;
}

const Fit* Smallest::sent() {
  if (s_.p.links.empty()) return nullptr;
  if (!sent_) {
    structure_.restart();
    for (const Pace& pace : s_.paces()) s_.try_retention(s_.everything_sent(), pace);
    sent_ = s_.lowest();
    structure_.forget();
  }
  return &*sent_;
}

const Fit& Smallest::made() {
  if (made_) return *made_;
  structure_.look();
  brought_down_.plans();
  structure_.restart();
  const auto least = [&](const auto& found_at) {
    int64_t high = s_.archive.plans().begin()->first - s_.index.persistent_bytes, low = 0;
    for (int round = 0; round < 12 && high - low > high / 64; ++round) {
      const int64_t room = low + (high - low) / 2;
      (found_at(room) ? high : low) = room;
    }
  };
  least([&](int64_t room) {
    RetentionPoints t;
    return structure_.backward() &&
           recurse(s_.p, s_.index, s_.intervals, s_.rules, structure_.stages(), room, t) &&
           s_.try_retention(t, {});
  });
  const auto shrink = [&] {
    if (s_.p.ops.size() > structure_.most_ops()) return;
    Candidate c = s_.archive.plans().begin()->second;
    s_.local_search.use_links(false);  // so that links do not make the smallest budget larger
    s_.local_search.shrink(c, kSearchWork);
    s_.local_search.use_links(true);
  };
  if (s_.p.ops.size() <= structure_.most_ops())
    for (const RetentionPoints& t : s_.local_search.minimal()) s_.try_retention(t, {});
  shrink();
  const int64_t before = s_.archive.plans().begin()->first;
  for (Segments& segments : structure_.segments())
    least([&](int64_t room) {
      const std::optional<RetentionPoints> t = segments.plan(room);
      return t && s_.try_retention(*t, {});
    });
  if (s_.archive.plans().begin()->first < before) shrink();
  for (const Candidate& c : brought_down_.plans()) s_.archive.add(c.retention_points, c.pace, c.cost);
  made_ = s_.lowest();
  const Candidate lowest = s_.archive.plans().begin()->second;
  if (const int64_t capacity = s_.searched_capacity(lowest); capacity < made_->plan.arena_bytes)
    if (auto fit = s_.lay_out_exactly(lowest, capacity)) made_ = std::move(fit);
  // Smaller budgets are tried until a budget fails that is one page less than a plan's arena. Each next budget lies
  // between those that failed and those that fit.
  int64_t too_low = least_bytes(s_.p, s_.index) - 1;  // a peak that there is no plan for
  const auto within = [&](int64_t budget) {
    int64_t target = budget;
    std::optional<Fit> fit;
    if (budget > too_low)
      fit =
          structure_.closest(budget, s_.bound_seconds(budget), kTableWork, Effort::kWhole, target, &too_low);
    return fit ? fit : brought_down_.laid_out_within(budget);
  };
  within(made_->plan.arena_bytes - kPageBytes);
  int64_t step = made_->plan.arena_bytes / kFirstStep, failed = least_bytes(s_.p, s_.index) - 1;
  for (int round = 0; round < kSmaller; ++round) {
    const int64_t arena = made_->plan.arena_bytes;
    if (arena - failed <= kPageBytes) break;
    step = std::clamp(step, kPageBytes, std::max(kPageBytes, (arena - failed) / 2));
    if (auto fit = within(arena - step)) {
      made_ = std::move(*fit);
      step *= 2;
    } else {
      failed = arena - step;
      step /= 4;
    }
  }
  // Plans that keep more values have other arenas, which may be lower.
  if (auto fit = brought_down_.fastest_within(made_->plan.arena_bytes - kPageBytes)) made_ = std::move(*fit);
  return *made_;
}

}  // namespace cairn::plan
