// Small problems: budgets at even steps between the least and what keeping everything takes, each searched for
// once it is asked for, so that more memory is never slower and the smallest budget is exact.
#pragma once
#include <memory>
#include <optional>

#include "runtime/plan/search/search.h"

namespace cairn::plan {

// What it answers does not depend on what was asked before.
class Levels {
 public:
  explicit Levels(Search&);
  ~Levels();
  Levels(const Levels&) = delete;
  Levels& operator=(const Levels&) = delete;

  // Nothing if the budget is less than lowest() takes; never slower than for a smaller one.
  std::optional<Fit> fastest_within(int64_t budget);
  Fit lowest();

 private:
  class Found;
  std::unique_ptr<Found> found_;
};

}  // namespace cairn::plan
