// From plans that are slow, or do not fit, to faster ones that fit, by annealing in which every item above the budget
// counts by itself.
#pragma once
#include <cstdint>
#include <optional>

#include "runtime/plan/search/brought_down.h"
#include "runtime/plan/search/structure_search.h"

namespace cairn::plan {

class ExcessRounds {
 public:
  ExcessRounds(Search& search, StructureSearch& structure, BroughtDown& brought_down)
      : s_(search), structure_(structure), brought_down_(brought_down) {}

  // Replaces `fit`, or an empty one, by a faster plan within the budget. came_down: `fit` is one of BroughtDown's
  // plans.
  void improve(std::optional<Fit>& fit, int64_t budget, int64_t work, bool came_down);

 private:
  Search& s_;
  StructureSearch& structure_;
  BroughtDown& brought_down_;
};

}  // namespace cairn::plan
