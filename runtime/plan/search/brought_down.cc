#include "runtime/plan/search/brought_down.h"

#include <algorithm>

#include "runtime/base/checked.h"

namespace cairn::plan {
namespace {

constexpr int64_t kSegmentRooms = 50;  // successive rooms of segments differ by such a part
constexpr int64_t kTimesLowest = 2;    // the most room, as a multiple of that of the lowest segments
constexpr int kMostRooms = 400;        // rooms of segments looked at
constexpr double kFaster = .97;        // of the seconds of the start before: another start has at most these
constexpr size_t kStarts = 10;
constexpr int64_t kDownParts = 64;  // a step lowers the target by such a part of the bytes alive
constexpr int kFailures = 3;        // after so many failed steps in a row, it stops
constexpr int64_t kDescendWork = 6'000'000, kAllWork = 150'000'000 / CAIRN_SEARCH_SHARE;
constexpr std::ptrdiff_t kHeld = 4;  // so many of the fastest plans that fit keep values where there is room
constexpr int64_t kNearWork = 12'000'000 / CAIRN_SEARCH_SHARE;  // of the search near the fastest plan
constexpr int64_t kHeldWork = 3'000'000, kLowestHeldWork = 30'000'000 / CAIRN_SEARCH_SHARE;
// The budget is divided into so many parts. At most so many parts remain free for holes of the layout.
constexpr int64_t kRoomForHoles = 100, kMostHoles = 4;
// With links, if nothing else fits: so many of these plans are laid out by the exact search.
constexpr int64_t kExactly = 2;
constexpr double kNearPeaks = .02;  // share above the seconds that peaks alone allow: so near is enough

}  // namespace

bool BroughtDown::possible() const { return structure_.backward() && s_.p.ops.size() <= kMostSearchedOps; }

// By rising peak. They depend on the problem alone.
const std::vector<Candidate>& BroughtDown::plans() {
  if (plans_) return *plans_;
  plans_.emplace();
  if (!possible()) return *plans_;
  structure_.look();
  structure_.restart();
  const std::vector<Candidate> starts = fast_segments();
  structure_.restart();
  s_.local_search.use_links(false);  // copies are tried later, near a plan that fits
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
  // A plan that recomputes everything for each op may have an even lower peak.
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
    if (!starts.empty() && peak <= starts.back().cost.peak_bytes) plans_->push_back(candidate);
  return *plans_;
}

// By rising peak, each clearly faster than the one before.
std::vector<Candidate> BroughtDown::fast_segments() {
  Segments& segments = structure_.fine_segments();
  int64_t room = least_bytes(s_.p, s_.index) - s_.index.persistent_bytes, most = 0;
  for (int k = 0; k < kMostRooms && (most == 0 || room <= most); ++k) {
    const std::optional<RetentionPoints> t = segments.plan(room);
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

// The fastest plans within the target keep values longer where there is room. If all are very slow, so does the
// lowest one.
std::optional<Candidate> BroughtDown::held_within(int64_t target) {
  const std::vector<Candidate>& all = plans();
  const auto end =
      std::find_if(all.begin(), all.end(), [&](const Candidate& c) { return c.cost.peak_bytes > target; });
  if (!s_.p.links.empty()) {
    for (auto c = end; c != all.end() && c - end < kHeld; ++c)
      structure_.aim_with_longest_idle(c->retention_points, target);
    // Of the plans above the target, the lowest recomputes most, and the highest offloads most.
    for (std::ptrdiff_t above = 0; above < all.end() - end; above = 2 * above + 1)
      s_.send_around_full(end[above], target);
  }
  const auto hold = [&](Candidate c, int64_t work) { s_.local_search.hold_longer(c, target, work); };
  for (auto c = all.begin(); c != end; ++c) s_.archive.add(c->retention_points, c->pace, c->cost);
  for (auto c = end - std::min<std::ptrdiff_t>(kHeld, end - all.begin()); c != end; ++c) hold(*c, kHeldWork);
  const Candidate* const within = s_.archive.within(target);
  if (!within) return {};
  if (end != all.begin() && s_.very_slow(within->cost.seconds)) hold(all.front(), kLowestHeldWork);
  Candidate best = *s_.archive.within(target);
  s_.local_search.search(best, target, kNearWork);
  return *s_.archive.within(target);
}

std::optional<Fit> BroughtDown::laid_out_within(int64_t budget) {
  const std::vector<Candidate>& all = plans();
  structure_.restart();
  for (const Candidate& c : all)
    if (c.cost.peak_bytes <= budget) s_.archive.add(c.retention_points, c.pace, c.cost);
  return s_.fastest_within(budget, budget, kLayoutsPerRound);
}

std::optional<Fit> BroughtDown::fastest_within(int64_t budget) {
  plans();
  structure_.restart();
  std::optional<Fit> best;
  const int64_t holes = (budget - s_.index.persistent_bytes) / kRoomForHoles;
  for (int64_t part = 0; part <= kMostHoles; ++part) {
    const int64_t target = budget - part * holes;
    const std::optional<Candidate> fastest = held_within(target);
    if (!fastest) break;
    keep_faster(best, s_.fastest_within(target, budget, kLayoutsPerRound));
    if (!best && part > 0 && part <= kExactly && !s_.p.links.empty())
      best = s_.lay_out_exactly(*fastest, budget);
    if (best && best->plan.predicted_seconds < (1 + kNearPeaks) * fastest->cost.seconds) break;
  }
  return best;
}

}  // namespace cairn::plan
