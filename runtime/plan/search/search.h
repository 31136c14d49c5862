// What the searches for plans share: how retention points are priced, the good plans met so far, and how one
// of them gets its offsets.
#pragma once
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/plan/local_search/local_search.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/search/archive.h"
#include "runtime/plan/search/effort.h"
#include "runtime/plan/segments/segments.h"
#include "runtime/plan/stages/frontier.h"

// Builds for sanitizers search a fraction: what they check is the same, their plans are as valid.
#ifndef CAIRN_SEARCH_SHARE
#define CAIRN_SEARCH_SHARE 1
#endif

namespace cairn::plan {

// A plan with its offsets, and what it was made from. Its seconds are known, not yet what explains it.
struct Fit {
  Plan plan;
  Candidate from;
};

inline void keep_faster(std::optional<Fit>& best, std::optional<Fit> fit) {
  if (fit && (!best || fit->plan.predicted_seconds < best->plan.predicted_seconds)) best = std::move(fit);
}

// Plans that searches have met, and some whose offsets were searched for.
struct Met {
  Archive archive;
  std::vector<Fit> exact;
};

class Search {
 public:
  // arenas_follow_peaks: a plan's arena is as low as its own peak allows, whatever the budget, so that what
  // fits fits under a higher budget as well. Else it need only be as low as the budget.
  Search(const Problem&, bool arenas_follow_peaks);
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // Forgets all plans; what follows depends on the problem and on later calls alone. Begins with the plans
  // that keep everything.
  void restart();
  // Has others for what was met so far, which are left there.
  void exchange(Met& met) {
    std::swap(archive, met.archive);
    exact_.swap(met.exact);
  }
  // False if the retention points are no plan.
  bool try_retention(const RetentionPoints&, Pace);
  RetentionPoints retention_of(const OptionSets&, const Chosen&) const;
  // Whatever no op uses is in a tier, as far as tiers have room: one copy at a time, no plan without recompute takes less.
  RetentionPoints everything_sent() const;
  // Plans from one that is too high: LocalSearch::send_around_full() with several limits to what copies need.
  void send_around_full(const Candidate& from, int64_t target);
  // Copies in a hurry, with room for a few, and one at a time.
  const std::vector<Pace>& paces() const { return paces_; }

  // lower_bound_seconds() of the problem, worked out once per budget; below kWhole: rough_bound_seconds().
  double bound_seconds(int64_t budget, Effort effort = Effort::kWhole);
  // A higher one, which takes its time, where a plan of such seconds is far above that one. What was asked before does not matter.
  double bound_seconds_below(double seconds, int64_t budget);

  // Tries hard only as long as the arena is higher than the budget.
  Plan lay_out(const Candidate&, int64_t budget);
  // Of that and of fastest_within(): as of assign_offsets().
  void set_layout_effort(int64_t effort) { layout_effort_ = effort; }
  // The least capacity for which an exact search for offsets is worth its time: a fiftieth above the peak.
  int64_t searched_capacity(const Candidate&) const;
  // Whether the plan, if its arena only fitted, would be much faster than the one there is.
  static bool worth_searching(const Candidate&, const std::optional<Fit>& there_is);
  // Searches for offsets within the capacity, which may take seconds.
  std::optional<Fit> lay_out_exactly(const Candidate&, int64_t capacity);
  // The same for a plan that any budget may use from now on.
  void lay_out_for_all(const Candidate&);
  void use_for_all(Fit fit) { exact_.push_back(std::move(fit)); }
  // A fit of a plan without copies with its layout, and back.
  Placed placed(const Fit&);
  Fit fit_of(const Placed&);
  // Whether plans may be annealed together with their layouts.
  bool places() const { return p.links.empty() && p.backward_begin == static_cast<int32_t>(p.ops.size()); }
  // The fastest plan met with such a peak whose arena fits, of the `attempts` fastest. first_over: by how
  // much the very fastest one's arena is above the budget; 0 if there is none.
  std::optional<Fit> fastest_within(int64_t peak, int64_t budget,
                                    int attempts = std::numeric_limits<int>::max(),
                                    int64_t* first_over = nullptr);
  // The plan met with the lowest arena.
  std::optional<Fit> lowest();

  const Problem& p;
  const Index index;
  const Intervals intervals;
  const Rules rules;
  Evaluator evaluate;
  Archive archive;
  LocalSearch local_search;
  Sequence sequence;  // scratch

 private:
  // What decides on a layout: the sequence, by its hash, what its copies come to, the capacity, and the effort.
  using LayoutKey = std::tuple<uint64_t, double, int64_t, int64_t, int64_t>;
  Plan scheduled(const Candidate&);
  int64_t capacity_for(const Candidate&, int64_t budget) const;

  const bool arenas_follow_peaks_;
  int64_t layout_effort_ = 0;
  std::vector<Pace> paces_;
  std::map<std::pair<int64_t, Effort>, double> bounds_;  // by budget
  std::map<int64_t, double> raised_;                     // of bound_seconds_below(), by budget
  std::vector<Fit> exact_;                               // that any budget may use
  std::map<LayoutKey, int64_t> too_high_;                // arenas of plans that fastest_within() passed over
};

// The link by which most is sent away: the one that takes most while forward runs.
int32_t widest_link(const Problem&, const Index&);

// All budgets of a small problem at once. Looks at the problem alone: what it finds is the same for every
// budget.
void search_all_budgets(Search&);

// One budget of a large problem: stages, dynamic program, local search. The same whatever was searched
// before.
class OneBudget {
 public:
  explicit OneBudget(Search& search) : s_(search) {}
  std::optional<Fit> solve(int64_t budget, Effort effort = Effort::kWhole);
  // With the lowest arena: solve() finds nothing for a page less than that.
  const Fit& smallest();

 private:
  // Ops of a problem that local search still does something for, and where it is no chain of blocks.
  static constexpr size_t kSearched = 6000, kSearchedGraphs = 25000;
  // Of local search after the dynamic program, and where the bound is far below what was found.
  static constexpr int64_t kSearchWork = 6'000'000, kFarWork = 60'000'000 / CAIRN_SEARCH_SHARE;
  // Of one long annealing where rounds of that stay far: it finds what several short ones do not.
  static constexpr int64_t kLongWork = 200'000'000 / CAIRN_SEARCH_SHARE;

  // Steps of the dynamic program.
  static constexpr int64_t kTableWork = 12'000'000, kQuickTableWork = 700'000;

  static constexpr int kLayouts = 8;           // tried per round
  static constexpr int64_t kMostParts = 400;   // the least step down is such a part
  static constexpr int32_t kFineGroups = 250;  // of segments near the smallest budget

  void look_at_stages();
  void aim(int64_t target, double bound, int64_t table_work);
  void aim_with(const OptionSets&, int32_t link, Lag, int64_t target, int64_t table_work);
  void deepen(int64_t target);
  void aim_with_segments(int64_t target, Segments&);
  void aim_with_longest_idle(const RetentionPoints& from, int64_t target);
  bool walks() const;
  bool places() const;  // plans may be annealed together with their layouts, and ops are few enough
  void anneal_placed(std::optional<Fit>&, int64_t budget, int64_t work);
  static constexpr int64_t kMostRoom = 2;  // that packed() looks for above peaks where nothing else fits
  std::optional<Fit> packed(int64_t budget, int64_t rooms);
  void lower_packed();
  // No backward half, no links, and ops are few enough for the exact search for offsets.
  bool prices_layouts() const;
  struct ByLimits {
    std::optional<Fit> fit;
    std::vector<Candidate> low;  // whose peaks fit, with less and less
  };
  std::optional<Fit> place_by_limits(Candidate, int64_t budget, std::vector<int64_t>& limits, int rounds);
  ByLimits search_by_limits(const Candidate& start, int64_t budget);
  std::optional<Fit> solve_by_limits(int64_t budget);
  void smallest_by_limits();
  bool beyond_cliff(double seconds) const;
  bool beyond_cliff(const std::optional<Fit>&) const;
  std::optional<Fit> from_above(int64_t budget);
  bool comes_down() const;
  const std::vector<Candidate>& brought_down();
  std::vector<Candidate> fast_segments();
  std::optional<Fit> laid_out_within(int64_t budget);
  std::optional<Candidate> held_within(int64_t target);
  std::optional<Fit> from_segments(int64_t budget);
  bool walk_down(int64_t target);
  void from_slow(std::optional<Fit>&, int64_t budget, int64_t work);
  std::optional<Fit> from_scratch(int64_t budget, Effort effort, int rounds_beyond);
  std::optional<Fit> closest(int64_t budget, double bound, int64_t table_work, int64_t& target,
                             int64_t* too_low = nullptr);
  int64_t descent_work() const;
  void restart();
  const Fit* smallest_sent();  // of all that is in a tier whenever no op uses it; nullptr without links
  const Fit& smallest_made();  // of what is made again
  Fit from_smallest(const Fit& lowest, int64_t budget, const std::optional<Fit>& there_is, Effort);
  void search_from_above(int64_t target, int64_t work);
  void improve_fit(Fit&, int64_t target, int64_t budget, double bound, Effort, int rounds, int rounds_beyond);
  void remember_fastest(int64_t budget);

  bool backward() const { return s_.p.backward_begin < static_cast<int32_t>(s_.p.ops.size()); }
  size_t most_ops() const;

  Search& s_;
  std::optional<Stages> stages_;
  std::vector<OptionSets> sets_;             // without links, and with the first one
  std::deque<Segments> segments_;            // of several numbers of groups; of chains of blocks none
  std::unique_ptr<Segments> fine_segments_;  // of more groups, for little above the smallest budget
  // What closest() found last, as long as nothing else was searched for since.
  struct Closest {
    int64_t budget, table_work, target;
    bool whole;  // no quick search
    std::optional<Fit> fit;
  };
  std::optional<Closest> closest_;
  std::optional<Fit> smallest_sent_, smallest_made_;
  std::optional<std::vector<Candidate>> brought_down_;
  Effort effort_ = Effort::kWhole;    // of what is asked now
  bool came_down_ = false;            // what solve() has is of from_segments()
  std::vector<Fit> way_down_;         // to smallest_by_limits(), each lower than the one before
  std::optional<Candidate> fastest_;  // met, whose offsets may be searched for
};

}  // namespace cairn::plan
