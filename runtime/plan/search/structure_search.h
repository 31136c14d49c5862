// Plans that follow from the structure of a graph for one budget, before any local search: the table over the stages
// of a chain, checkpoints of several levels, segments of graphs that are not a chain; and greedy eviction.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/plan/search/search.h"
#include "runtime/plan/structure/frontier.h"
#include "runtime/plan/structure/segments.h"

namespace cairn::plan {

// Local search is left out for problems with more ops; the second number is for graphs that are not a chain of
// blocks.
inline constexpr size_t kMostSearchedOps = 6000, kMostOpsOfGraph = 25000;
inline constexpr int64_t kSearchWork = 6'000'000;  // of one local search
inline constexpr int64_t kTableWork = 12'000'000,
                         kQuickTableWork = 700'000;                   // steps of the table over the stages
inline constexpr int kLayoutsPerRound = 8;                            // arenas that are tried per round
inline constexpr double kGoodEnough = 1e-3, kGoodEnoughLater = 5e-3;  // gaps to the bound that end a search

class StructureSearch {
 public:
  explicit StructureSearch(Search&);
  ~StructureSearch();
  StructureSearch(const StructureSearch&) = delete;
  StructureSearch& operator=(const StructureSearch&) = delete;

  // Finds the stages of the problem, once. To be called before the questions below.
  void look();
  const Stages& stages() const { return *stages_; }
  bool chain() const { return stages_->chain; }
  bool backward() const { return s_.p.backward_begin < static_cast<int32_t>(s_.p.ops.size()); }
  size_t most_ops() const;
  std::deque<Segments>& segments() { return segments_; }
  Segments& fine_segments();

  // The fastest plan that structure gives within the budget. target: the peak for which arenas fit. too_low: the
  // highest peak known to have no plan; no lower one is looked for.
  std::optional<Fit> closest(int64_t budget, double bound, int64_t table_work, Effort, int64_t& target,
                             int64_t* too_low = nullptr);
  // The fastest plan of Greedy within the budget.
  std::optional<Fit> greedy(int64_t budget, int64_t& target);
  // closest() keeps its last answer until the archive holds something else.
  void forget() { closest_.reset(); }
  void restart();

  // Both fill the archive with plans whose peak is near the target.
  void aim_with_segments(int64_t target, Segments&);
  void aim_with_longest_idle(const RetentionPoints& from, int64_t target);

 private:
  void aim(int64_t target, double bound, int64_t table_work, Effort);
  void aim_with(const OptionSets&, int32_t link, Lag, int64_t target, int64_t table_work);
  void deepen(int64_t target);
  int64_t descent_work(Effort) const;

  Search& s_;
  std::optional<Stages> stages_;
  std::vector<OptionSets> sets_;             // without links, and with the first link
  std::deque<Segments> segments_;            // of several numbers of groups; none for chains of blocks
  std::unique_ptr<Segments> fine_segments_;  // with more groups
  struct Closest {
    int64_t budget, table_work, target;
    bool whole;  // whether the search has full effort
    std::optional<Fit> fit;
  };
  std::optional<Closest> closest_;
};

}  // namespace cairn::plan
