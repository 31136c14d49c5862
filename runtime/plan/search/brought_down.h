// Plans of segments are fast, but their peaks are often too high. Here the peaks are lowered a little at a time. That
// gives plans for all budgets down to little above the working set of the largest ops, where values between blocks
// are recomputed in several levels.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/plan/search/structure_search.h"

namespace cairn::plan {

class BroughtDown {
 public:
  BroughtDown(Search& search, StructureSearch& structure) : s_(search), structure_(structure) {}

  // False without a backward part and for very many ops: then plans() is empty.
  bool possible() const;
  // By rising peak. They depend on the problem alone and are found once.
  const std::vector<Candidate>& plans();
  // The fastest of these plans within the target, improved: values are held longer where there is room.
  std::optional<Candidate> held_within(int64_t target);
  // The fastest plan with an arena within the budget, among the improved plans and the original ones.
  std::optional<Fit> fastest_within(int64_t budget);
  std::optional<Fit> laid_out_within(int64_t budget);

 private:
  std::vector<Candidate> fast_segments();

  Search& s_;
  StructureSearch& structure_;
  std::optional<std::vector<Candidate>> plans_;
};

}  // namespace cairn::plan
