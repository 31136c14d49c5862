// What all searches of one problem share: the pricing of retention points, the good plans met so far, and the offsets
// of a plan.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/plan/in_parallel.h"
#include "runtime/plan/local_search/archive.h"
#include "runtime/plan/local_search/local_search.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/search/effort.h"
#include "runtime/plan/structure/frontier.h"

// Builds for sanitizers do a fraction of the work. Their plans are slower, but as valid.
#ifndef CAIRN_SEARCH_SHARE
#define CAIRN_SEARCH_SHARE 1
#endif

namespace cairn::plan {

// A plan with offsets and seconds, and the candidate that it was made from. Reasons and the bound are added at the end.
struct Fit {
  Plan plan;
  Candidate from;
};

inline void keep_faster(std::optional<Fit>& best, std::optional<Fit> fit) {
  if (fit && (!best || fit->plan.predicted_seconds < best->plan.predicted_seconds)) best = std::move(fit);
}

// Plans that searches have met. exact: plans whose offsets the exact search has looked for.
struct Met {
  Archive archive;
  std::vector<Fit> exact;
};

class Search {
 public:
  // arenas_follow_peaks: offsets of a plan are made for its own peak and not for the budget. Then a plan that fits
  // one budget fits every larger one. If false, an arena need only be as low as the budget.
  Search(const Problem&, bool arenas_follow_peaks, int threads = kMostThreads);
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // Forgets all plans and begins with those that keep everything. What follows depends on the problem and on later
  // calls alone.
  void restart();
  // Exchanges the plans met so far for others.
  void exchange(Met& met) {
    std::swap(archive, met.archive);
    exact_.swap(met.exact);
  }
  // More than three times the seconds of keeping everything, or no plan at all.
  bool very_slow(double seconds) const { return seconds > kVerySlow * index.total_seconds; }
  bool very_slow(const std::optional<Fit>& fit) const {
    return !fit || very_slow(fit->plan.predicted_seconds);
  }
  // False if the retention points describe no plan.
  bool try_retention(const RetentionPoints&, Pace);
  RetentionPoints retention_of(const OptionSets&, const Chosen&) const;
  // Every value is offloaded whenever no op uses it, as far as tiers have room. With one copy at a time, no plan
  // without recompute has a lower peak.
  RetentionPoints everything_sent() const;
  // LocalSearch::send_around_full() from a plan whose peak is too high, with several limits to the memory of copies.
  void send_around_full(const Candidate& from, int64_t target);
  // How many bytes of copies may be in flight: any number, a few values, one value.
  const std::vector<Pace>& paces() const { return paces_; }

  // lower_bound_seconds() of the problem, or rough_bound_seconds() for less effort. Computed once per budget.
  double bound_seconds(int64_t budget, Effort effort = Effort::kWhole);
  // If a plan with such seconds is far above that bound: a higher bound, which takes longer to compute.
  double bound_seconds_below(double seconds, int64_t budget);

  // The plan with offsets. The layout is searched for longer if the arena is above the budget.
  Plan lay_out(const Candidate&, int64_t budget);
  // The effort of lay_out() and fastest_within(), as of assign_offsets().
  void set_layout_effort(int64_t effort) { layout_effort_ = effort; }
  // The least capacity for which the exact search for offsets is worth its time: a fiftieth above the peak.
  int64_t searched_capacity(const Candidate&) const;
  // Whether the candidate would be much faster than the present plan, if its arena fitted.
  static bool worth_searching(const Candidate&, const std::optional<Fit>& there_is);
  // Offsets within the capacity by the exact search, which may take seconds; nothing if none are found.
  std::optional<Fit> lay_out_exactly(const Candidate&, int64_t capacity);
  // The same for a capacity a little above the candidate's peak. Any budget may use the plan afterwards.
  void lay_out_for_all(const Candidate&);
  // Of the `attempts` fastest plans with such a peak, the fastest one whose arena is within the budget. first_over:
  // how far the arena of the very fastest one is above the budget; 0 if it is within.
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
  Sequence sequence;  // scratch memory of all searches

 private:
  static constexpr double kVerySlow = 3;
  // All that a layout depends on: the hash of the sequence, its seconds and peak, the capacity, the effort.
  using LayoutKey = std::tuple<uint64_t, double, int64_t, int64_t, int64_t>;
  Plan scheduled(const Candidate&);
  int64_t capacity_for(const Candidate&, int64_t budget) const;

  const bool arenas_follow_peaks_;
  const int threads_;
  int64_t layout_effort_ = 0;
  std::vector<Pace> paces_;
  std::map<std::pair<int64_t, Effort>, double> bounds_;  // results of bound_seconds()
  std::map<int64_t, double> raised_;                     // results of bound_seconds_below(), by budget
  std::vector<Fit> exact_;                               // plans with offsets that any budget may use
  std::map<LayoutKey, int64_t> too_high_;                // arenas of plans that fastest_within() passed over
};

// The link that can copy most bytes while forward runs.
int32_t widest_link(const Problem&, const Index&);

// Searches a small problem for all budgets. Afterwards the archive holds the plans.
void search_all_budgets(Search&);

}  // namespace cairn::plan
