// Part of the search for one budget: plans of segments, which are fast and too high, come down a little at a time. That makes plans
// for all budgets down to little above the working set of the largest ops, where values between blocks have to be made again in
// several levels.
#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/plan/search/search.h"

namespace cairn::plan {
namespace {

constexpr int64_t kSegmentRooms = 50;  // rooms of segments differ by such a part
constexpr int64_t kTimesLowest = 2;    // the most room, against that of the lowest segments
constexpr int kAims = 8;               // rooms until a peak is the target
constexpr int kMostRooms = 400;        // looked at
constexpr double kFaster = .97;        // seconds, against the start before, that make another start
constexpr size_t kStarts = 10;
constexpr int64_t kDownParts = 64;  // a step down is such a part of what is alive
constexpr int kFailures = 3;        // steps in a row that end the way down
constexpr int64_t kDescendWork = 6'000'000, kAllWork = 150'000'000 / CAIRN_SEARCH_SHARE;
constexpr std::ptrdiff_t kHeld = 4;  // of the fastest plans that fit, hold what there is room for
constexpr int64_t kNearWork = 12'000'000 / CAIRN_SEARCH_SHARE;  // of search near the fastest one
constexpr int64_t kHeldWork = 3'000'000, kLowestHeldWork = 30'000'000 / CAIRN_SEARCH_SHARE;
// Room left free for holes of the layout: so many of such parts of the budget at most.
constexpr int64_t kRoomForHoles = 100, kMostHoles = 4;
// With links, if nothing else fits: so many of these are laid out by the exact search.
constexpr int64_t kExactly = 2;
constexpr double kNearPeaks = .02;  // of what peaks alone would allow, what layouts may cost

}  // namespace

bool OneBudget::comes_down() const { return backward() && s_.p.ops.size() <= kSearched; }

// By rising peaks. They depend on the problem alone.
const std::vector<Candidate>& OneBudget::brought_down() {
  if (brought_down_) return *brought_down_;
  brought_down_.emplace();
  if (!comes_down()) return *brought_down_;
  look_at_stages();
  restart();
  const std::vector<Candidate> starts = fast_segments();
  restart();
  s_.local_search.use_links(false);  // what is made again; near a plan that fits copies are looked for
  const int64_t until = s_.evaluate.work() + kAllWork;
  for (const Candidate& start : starts) {
    Candidate c = start;
    int64_t target = c.cost.peak_bytes;
    for (int failed = 0; failed < kFailures && s_.evaluate.work() < until;) {
      target -= std::max<int64_t>(1, (target - s_.index.persistent_bytes) / kDownParts);
      if (c.cost.peak_bytes <= target) continue;
      bool down = false;
      for (const Candidate* from : {static_cast<const Candidate*>(&c), &start}) {
        Candidate next = *from;
        down = s_.local_search.descend(next, target, kDescendWork);
        if (down) c = std::move(next);
        if (down || c.cost.peak_bytes == start.cost.peak_bytes) break;
      }
      failed = down ? 0 : failed + 1;
    }
  }
  // What makes everything again for each op takes less still, now and then.
  if (!starts.empty()) {
    Candidate lowest{s_.rules.base, {}, {}};
    for (const RetentionPoints& t : s_.local_search.minimal())
      if (const Cost cost = s_.evaluate(t, {}, s_.sequence);
          cost.valid && (!lowest.cost.valid || cost.peak_bytes < lowest.cost.peak_bytes))
        lowest = {t, {}, cost};
    if (lowest.cost.valid) s_.local_search.shrink(lowest, kSearchWork);
  }
  s_.local_search.use_links(true);
  for (const auto& [peak, candidate] : s_.archive.plans())
    if (!starts.empty() && peak <= starts.back().cost.peak_bytes) brought_down_->push_back(candidate);
  return *brought_down_;
}

// From the lowest ones up, each faster than the one before.
std::vector<Candidate> OneBudget::fast_segments() {
  if (!fine_segments_)
    fine_segments_ = std::make_unique<Segments>(s_.p, s_.index, s_.intervals, s_.rules, kFineGroups);
  int64_t room = least_bytes(s_.p, s_.index) - s_.index.persistent_bytes, most = 0;
  for (int k = 0; k < kMostRooms && (most == 0 || room <= most); ++k) {
    const std::optional<RetentionPoints> t = fine_segments_->plan(room);
    if (t && s_.try_retention(*t, {}) && most == 0) most = kTimesLowest * room;
    room += std::max<int64_t>(1, room / kSegmentRooms);
  }
  std::vector<Candidate> starts;
  for (const auto& [peak, candidate] : s_.archive.plans())
    if (starts.size() < kStarts && peak - s_.index.persistent_bytes <= kTimesLowest * most &&
        (starts.empty() || candidate.cost.seconds < starts.back().cost.seconds * kFaster))
      starts.push_back(candidate);
  return starts;
}

// Groups of ops, wherever forward is cut.
void OneBudget::aim_with_segments(int64_t target, Segments& segments) {
  const int64_t wanted = target - s_.index.persistent_bytes;
  int64_t room = wanted, fits = 0, too_much = 0;
  for (int round = 0; round < kAims && room > 0; ++round) {
    const std::optional<RetentionPoints> t = segments.plan(room);
    Cost cost;
    if (t) cost = s_.evaluate(*t, {}, s_.sequence);
    if (cost.valid) s_.archive.add(*t, {}, cost);
    const int64_t spare = cost.valid ? target - cost.peak_bytes : -1;
    (!t || spare >= 0 ? fits : too_much) = room;
    if (!t) {
      room = too_much > 0 ? (room + too_much) / 2 : room * 5 / 4;
      continue;
    }
    if (!cost.valid) break;
    if (spare >= 0 && spare <= wanted / 1000) break;
    if (fits > 0 && too_much > 0 && std::abs(too_much - fits) <= wanted / 2000) break;
    room = fits > 0 && too_much > 0 ? (fits + too_much) / 2 : room + spare;
  }
}

// What is not used for longest around the beginning of backward is sent away, as many values as it takes: their copies have most time.
// From everything kept, for graphs that are no chain of blocks; and from what makes values again, which then takes less.
void OneBudget::aim_with_longest_idle(const RetentionPoints& from, int64_t target) {
  const int32_t link = widest_link(s_.p, s_.index);
  std::vector<double> begins = {0};  // of ops, if everything is kept
  for (const Op& op : s_.p.ops) begins.push_back(begins.back() + op.seconds);
  const auto idle = [&](int32_t g) {
    const Intervals::Interval& interval = s_.intervals.all[g];
    return begins[interval.end] - begins[interval.begin + 1];
  };
  std::vector<int32_t> order;
  int64_t room = s_.p.links[link].capacity_bytes;
  for (size_t v = 0; v < s_.p.values.size(); ++v) {
    const int32_t g = s_.rules.across[v];
    if (g >= 0 && s_.rules.sent[g] && from[g] >= 0 && s_.intervals.all[g].end != kNever &&
        s_.p.values[v].bytes >= kPageBytes)
      order.push_back(g);
  }
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return idle(a) > idle(b); });
  const auto fits = [&](int32_t g) { return (room -= s_.p.values[s_.intervals.all[g].value].bytes) >= 0; };
  order.erase(std::find_if_not(order.begin(), order.end(), fits), order.end());
  for (const Pace& pace : s_.paces()) {
    size_t low = 0, high = order.size() + 1;  // too few, and enough
    while (high - low > 1) {
      const size_t count = low + (high - low) / 2;
      RetentionPoints t = from;
      for (size_t k = 0; k < count; ++k) t[order[k]] = over_link(link);
      const Cost cost = s_.evaluate(t, pace, s_.sequence);
      if (cost.valid) s_.archive.add(t, pace, cost);
      (cost.valid && cost.peak_bytes <= target ? high : low) = count;
    }
  }
}

// What fits holds longer what there is room for: the fastest plans, and, beyond the cliff, the lowest one, which makes most again.
std::optional<Candidate> OneBudget::held_within(int64_t target) {
  const std::vector<Candidate>& all = brought_down();
  const auto end =
      std::find_if(all.begin(), all.end(), [&](const Candidate& c) { return c.cost.peak_bytes > target; });
  if (!s_.p.links.empty()) {
    for (auto c = end; c != all.end() && c - end < kHeld; ++c)
      aim_with_longest_idle(c->retention_points, target);
    // The lowest of them makes most again, the highest sends most.
    for (std::ptrdiff_t above = 0; above < all.end() - end; above = 2 * above + 1)
      s_.send_around_full(end[above], target);
  }
  const auto hold = [&](Candidate c, int64_t work) { s_.local_search.hold_longer(c, target, work); };
  for (auto c = all.begin(); c != end; ++c) s_.archive.add(c->retention_points, c->pace, c->cost);
  for (auto c = end - std::min<std::ptrdiff_t>(kHeld, end - all.begin()); c != end; ++c) hold(*c, kHeldWork);
  const Candidate* const within = s_.archive.within(target);
  if (!within) return {};
  if (end != all.begin() && beyond_cliff(within->cost.seconds)) hold(all.front(), kLowestHeldWork);
  Candidate best = *s_.archive.within(target);
  s_.local_search.search(best, target, kNearWork);
  return *s_.archive.within(target);
}

std::optional<Fit> OneBudget::laid_out_within(int64_t budget) {
  const std::vector<Candidate>& all = brought_down();
  restart();
  for (const Candidate& c : all)
    if (c.cost.peak_bytes <= budget) s_.archive.add(c.retention_points, c.pace, c.cost);
  return s_.fastest_within(budget, budget, kLayouts);
}

std::optional<Fit> OneBudget::from_segments(int64_t budget) {
  brought_down();
  restart();
  std::optional<Fit> best;
  const int64_t holes = (budget - s_.index.persistent_bytes) / kRoomForHoles;
  for (int64_t part = 0; part <= kMostHoles; ++part) {
    const int64_t target = budget - part * holes;
    const std::optional<Candidate> fastest = held_within(target);
    if (!fastest) break;
    keep_faster(best, s_.fastest_within(target, budget, kLayouts));
    if (!best && part > 0 && part <= kExactly && !s_.p.links.empty())
      best = s_.lay_out_exactly(*fastest, budget);
    if (best && best->plan.predicted_seconds < (1 + kNearPeaks) * fastest->cost.seconds) break;
  }
  return best;
}

}  // namespace cairn::plan
