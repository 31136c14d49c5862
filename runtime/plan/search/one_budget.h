// The search for one budget of a large problem: structure, then local search, then annealing where the plan is still
// far above the bound.
#pragma once
#include <cstdint>
#include <optional>

#include "runtime/plan/search/brought_down.h"
#include "runtime/plan/search/excess_rounds.h"
#include "runtime/plan/search/smallest.h"
#include "runtime/plan/search/structure_search.h"

namespace cairn::plan {

// Answers do not depend on earlier questions.
class OneBudget {
 public:
  explicit OneBudget(Search& search) : s_(search) {}

  std::optional<Fit> solve(int64_t budget, Effort effort = Effort::kWhole);
  // The plan with the lowest arena. For a budget of one page less, solve() finds nothing.
  const Fit& smallest() { return smallest_.plan(); }

 private:
  std::optional<Fit> from_scratch(int64_t budget, Effort);
  void try_greedy(std::optional<Fit>&, int64_t budget);
  Fit from_smallest(const Fit& smallest, int64_t budget);
  void improve_fit(Fit&, int64_t target, int64_t budget, double bound, Effort, int rounds);
  void search_from_above(int64_t target, int64_t work);
  void remember_fastest(int64_t budget);

  Search& s_;
  StructureSearch structure_{s_};
  BroughtDown brought_down_{s_, structure_};
  Smallest smallest_{s_, structure_, brought_down_};
  ExcessRounds rounds_{s_, structure_, brought_down_};
  bool came_down_ = false;            // solve()'s present plan is one of brought_down_
  std::optional<Candidate> fastest_;  // the fastest candidate met whose offsets may be searched for
};

}  // namespace cairn::plan
