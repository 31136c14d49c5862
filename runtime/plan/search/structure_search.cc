#include "runtime/plan/search/structure_search.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "runtime/base/checked.h"
#include "runtime/plan/local_search/greedy.h"
#include "runtime/plan/structure/recursion.h"

namespace cairn::plan {
namespace {

constexpr int64_t kDescentWork = 6'000'000;         // of a descent, where nothing fits yet
constexpr int64_t kGreedyWork = 6'000'000;          // of one greedy search
constexpr int64_t kQuickDescent = 500;              // per op, of a search with less than full effort
constexpr size_t kOptions = 48, kManyOptions = 96;  // per stage; with a link, more of them are useful
// The cost per byte of a late copy depends on how scarce the link is. That is known only from the plans, so several
// values are tried.
constexpr std::array<Lag, 4> kLags = {Lag{8, .05}, Lag{3, .1}, Lag{8, .25}, Lag{8, .6}};
constexpr double kQuickEnough = 1e-2;  // above the bound: if nearer, a quick search tries no other way
constexpr double kFarOfLinks = 3e-2;   // above the bound: copies are tried in other ways
constexpr std::array<int32_t, 2> kGroups = {32, 96};  // numbers of groups of Segments
constexpr int32_t kFineGroups = 250;                  // of Segments, near the smallest budget
constexpr int kPeakRounds = 4;                        // of feedback from the real peak or arena
constexpr int kSegmentRounds = 8;                     // the same, for plans of segments

}  // namespace

StructureSearch::StructureSearch(Search& search) : s_(search) {}
StructureSearch::~StructureSearch() = default;

size_t StructureSearch::most_ops() const { return stages_->chain ? kMostSearchedOps : kMostOpsOfGraph; }

Segments& StructureSearch::fine_segments() {
  if (!fine_segments_)
    fine_segments_ = std::make_unique<Segments>(s_.p, s_.index, s_.intervals, s_.rules, kFineGroups);
  return *fine_segments_;
}

void StructureSearch::restart() {
  forget();
  s_.restart();
}

std::optional<Fit> StructureSearch::closest(int64_t budget, double bound, int64_t table_work, Effort effort,
                                            int64_t& target, int64_t* too_low) {
  const bool whole = effort == Effort::kWhole;
  if (closest_ && closest_->budget == budget && closest_->table_work == table_work &&
      closest_->whole == whole) {
    target = closest_->target;
    return closest_->fit;
  }
  restart();
  target = budget;
  std::optional<Fit> best;
  for (int round = 0; round < kPeakRounds && target > s_.index.persistent_bytes; ++round) {
    if (too_low && target <= *too_low) break;
    aim(target, bound, table_work, effort);
    const Candidate* first = s_.archive.within(target);
    if (!first && too_low) *too_low = target;
    if (!first) break;
    const int64_t peak = first->cost.peak_bytes;
    int64_t over = 0;
    keep_faster(best, s_.fastest_within(target, budget, kLayoutsPerRound, &over));
    if (over <= 0) break;
    target = peak - over;
  }
  if (!too_low) closest_ = Closest{budget, table_work, target, whole, best};
  return best;
}

std::optional<Fit> StructureSearch::greedy(int64_t budget, int64_t& target) {
  target = budget;
  if (!backward() || s_.p.ops.size() > kMostSearchedOps) return {};
  restart();
  Greedy seeds(s_.p, s_.index, s_.intervals, s_.rules, s_.evaluate, s_.archive);
  std::optional<Fit> best;
  for (int round = 0; round < kPeakRounds && target > s_.index.persistent_bytes; ++round) {
    seeds.run(target, kGreedyWork);
    const Candidate* first = s_.archive.within(target);
    if (!first) break;
    const int64_t peak = first->cost.peak_bytes;
    int64_t over = 0;
    keep_faster(best, s_.fastest_within(target, budget, kLayoutsPerRound, &over));
    if (over <= 0) break;
    target = peak - over;
  }
  return best;
}

void StructureSearch::look() {
  if (stages_) return;
  stages_.emplace(s_.p, s_.index);
  if (!stages_->chain) {
    s_.local_search.be_thorough();
    for (const int32_t groups : kGroups)
      if (backward()) segments_.emplace_back(s_.p, s_.index, s_.intervals, s_.rules, groups);
  }
  sets_.push_back({s_.p, s_.index, s_.intervals, s_.rules, *stages_, -1, kOptions});
  if (s_.p.links.empty()) return;
  const int32_t link = widest_link(s_.p, s_.index);
  sets_.push_back({s_.p, s_.index, s_.intervals, s_.rules, *stages_, link, kManyOptions});
}

// The work of the descent from the lowest plan to the target, where no plan is within the target.
int64_t StructureSearch::descent_work(Effort effort) const {
  if (effort != Effort::kWhole)
    return std::min(kDescentWork, static_cast<int64_t>(s_.p.ops.size()) * kQuickDescent);
  return stages_->chain ? LocalSearch::kUnlimited : kDescentWork;
}

// Fills the archive with plans whose peak is close to the target.
void StructureSearch::aim(int64_t target, double bound, int64_t table_work, Effort effort) {
  look();
  const auto is_above = [&](double gap) {
    const Candidate* const found = s_.archive.within(target);
    return !found || found->cost.seconds > bound * (1 + gap);
  };
  // A quick search tries plans without links last, and only if those with links are not fast enough.
  const bool linked_first = !s_.p.links.empty() && table_work < kTableWork;
  if (!linked_first) aim_with(sets_[0], -1, {}, target, table_work);
  if (!s_.p.links.empty()) {
    const int32_t link = widest_link(s_.p, s_.index);
    // The table is coarse: fewer options may lead to a faster plan.
    if (effort == Effort::kWhole && sets_.size() < 3)
      sets_.push_back({s_.p, s_.index, s_.intervals, s_.rules, *stages_, link, kOptions});
    for (const Lag& lag : kLags) {
      aim_with(sets_[1], link, lag, target, table_work);
      if (!is_above(effort == Effort::kWhole ? kGoodEnough : kQuickEnough)) break;
      if (effort == Effort::kWhole) aim_with(sets_[2], link, lag, target, table_work);
    }
  }
  if (linked_first && is_above(kFarOfLinks)) aim_with(sets_[0], -1, {}, target, table_work);
  if (!s_.p.links.empty() && !stages_->chain && is_above(kFarOfLinks))
    aim_with_longest_idle(s_.rules.base, target);
  // If the link is fast enough, nothing has to be recomputed.
  if (!s_.p.links.empty() && effort == Effort::kWhole && is_above(kFarOfLinks))
    s_.send_around_full({s_.rules.base, {}, {}}, target);
  if (is_above(kGoodEnoughLater)) {
    if (backward()) deepen(target);
    for (Segments& segments : segments_) aim_with_segments(target, segments);
  }
  if (s_.archive.within(target) || s_.p.ops.size() > most_ops()) return;
  for (const RetentionPoints& t : s_.local_search.minimal()) s_.try_retention(t, {});
  Candidate c = s_.archive.plans().begin()->second;
  s_.local_search.descend(c, target, descent_work(effort));
}

// The peak in the table differs a little from the real one. Changes the room of the table until the real peak is the
// target.
void StructureSearch::aim_with(const OptionSets& sets, int32_t link, Lag lag, int64_t target,
                               int64_t table_work) {
  const int64_t wanted = target - s_.index.persistent_bytes;
  int64_t room = wanted, fits = 0, too_much = 0;
  double price = 0;
  for (int round = 0; round < (link < 0 ? 2 * kPeakRounds : kPeakRounds) && room > 0; ++round) {
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

// Checkpoints of several levels.
void StructureSearch::deepen(int64_t target) {
  int64_t room = target - s_.index.persistent_bytes;
  for (int round = 0; round < 2 * kPeakRounds && room > 0; ++round) {
    RetentionPoints t;
    if (!recurse(s_.p, s_.index, s_.intervals, s_.rules, *stages_, room, t, &sets_[0])) return;
    const Cost cost = s_.evaluate(t, {}, s_.sequence);
    if (!cost.valid) return;
    s_.archive.add(t, {}, cost);
    if (cost.peak_bytes <= target) return;
    room -= cost.peak_bytes - target;
  }
}

// Plans of segments of ops. Changes the room of the table until the real peak is the target.
void StructureSearch::aim_with_segments(int64_t target, Segments& segments) {
  const int64_t wanted = target - s_.index.persistent_bytes;
  int64_t room = wanted, fits = 0, too_much = 0;
  for (int round = 0; round < kSegmentRounds && room > 0; ++round) {
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

// Offloads as many values as are needed, those first that are unused for longest around the beginning of backward:
// their copies have most time.
void StructureSearch::aim_with_longest_idle(const RetentionPoints& from, int64_t target) {
  const int32_t link = widest_link(s_.p, s_.index);
  std::vector<double> begins = {0};  // when ops begin, if everything is kept
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
    size_t low = 0, high = order.size() + 1;  // numbers of values: too few, and enough
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

}  // namespace cairn::plan
