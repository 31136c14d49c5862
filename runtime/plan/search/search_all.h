// The search of small problems at all budgets, or at those of them that are asked for.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/plan/search/search.h"

namespace cairn::plan {

// What it finds is in the search's archive. It aims at levels: budgets at even steps between the least that it can find and what
// keeping everything takes.
class AllBudgets {
 public:
  explicit AllBudgets(Search& search) : s_(search), p_(search.p) {}

  // All levels below a budget, each from what was met at those before. As if there were no links first: with them the smallest budget
  // is no larger, and nothing slower.
  void run(int64_t below = std::numeric_limits<int64_t>::max());

  // What structure gives. levels() of them lie between the lowest of that and keeping everything.
  void look();
  int levels() const;
  int64_t budget_at(int level) const;
  // Whether what was met at a level that no other serves is as good as searches have to be.
  bool near(int level) { return near(level, far_level_); }
  // One level by itself, with what look() left in the archive there.
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
  void anneal_far(int64_t budget, double bound);
  int64_t arena_of(const Candidate&);
  void search_layouts();
  bool search_layout(const Candidate&);
  bool has_wide_link(int64_t bytes) const;
  void come_down();
  bool backward() const { return p_.backward_begin < static_cast<int32_t>(p_.ops.size()); }
  int64_t level_work() const;

  Search& s_;
  const Problem& p_;
  Problem alone_;                                   // without links
  int64_t most_ = 0, least_ = 0, least_alone_ = 0;  // peaks that levels lie between
  std::vector<Candidate> minimal_;
  Candidate laid_out_;  // by arena_of(), and its arena
  int64_t arena_ = 0;
  double far_level_ = 0;
  int in_vain_ = 0;              // anneal_far(), last
  std::vector<Candidate> high_;  // met with arenas much higher than their peaks
};

}  // namespace cairn::plan
