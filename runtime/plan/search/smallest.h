// The smallest budget of a large problem, and the plan for it. Each is found once.
#pragma once
#include <optional>

#include "runtime/plan/search/brought_down.h"
#include "runtime/plan/search/structure_search.h"

namespace cairn::plan {

class Smallest {
 public:
  Smallest(Search& search, StructureSearch& structure, BroughtDown& brought_down)
      : s_(search), structure_(structure), brought_down_(brought_down) {}

  // The lower of the two plans below.
  const Fit& plan();
  // The plan in which every value is offloaded whenever no op uses it. nullptr without links.
  const Fit* sent();
  // The plan in which values are recomputed.
  const Fit& made();

 private:
  Search& s_;
  StructureSearch& structure_;
  BroughtDown& brought_down_;
  std::optional<Fit> sent_, made_;
};

}  // namespace cairn::plan
