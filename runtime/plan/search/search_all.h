// The search of small problems at all budgets, or at those of them that are asked for.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/plan/search/search.h"

namespace cairn::plan {

// What it finds is in the search's archive. It searches at levels: budgets at even steps between the lowest peak that
// it can find and what keeping everything takes.
class AllBudgets {
 public:
  explicit AllBudgets(Search& search) : s_(search), p_(search.p) {}

  // Searches all levels below a budget from the lowest to the highest, each from the plans met at those before. Plans
  // without links come first, so that links make neither the smallest budget larger nor any plan slower.
  void run(int64_t below = std::numeric_limits<int64_t>::max());

  // Fills the archive with the plans that structure gives. levels() budgets lie between the lowest of these and
  // keeping everything.
  void look();
  int levels() const;
  int64_t budget_at(int level) const;
  // Whether the best plan at a level is near enough to the bound.
  bool near(int level) { return near(level, far_level_); }
  // Searches one level, from the plans of look().
  void aim_once(int level);

 private:
  bool near(int level, double gap);
  void begin();
  void send_everything();
  void try_subsets();
  void from_structure(int64_t room, int32_t link);
  void send_around_full(const Candidate& made);
  void aim_everywhere(const Problem& bounded, int64_t below);
  void aim_at(const Problem& bounded, int64_t budget, bool rough);
  void aim(int64_t budget, int64_t work);
  void try_greedy(int64_t budget);
  void anneal_far(int64_t budget, double bound);
  int64_t arena_of(const Candidate&);
  void search_layouts();
  bool search_layout(const Candidate&);
  bool has_wide_link(int64_t bytes) const;
  bool backward() const { return p_.backward_begin < static_cast<int32_t>(p_.ops.size()); }
  int64_t level_work() const;

  Search& s_;
  const Problem& p_;
  Problem alone_;                                   // the problem without links
  int64_t most_ = 0, least_ = 0, least_alone_ = 0;  // peaks between which the levels lie
  std::vector<Candidate> minimal_;
  Candidate laid_out_;  // the candidate of the last arena_of(), and its arena
  int64_t arena_ = 0;
  double far_level_ = 0;
  int in_vain_ = 0;              // the last anneal_far() calls without a gain
  std::vector<Candidate> high_;  // plans with arenas much higher than their peaks
};

}  // namespace cairn::plan
