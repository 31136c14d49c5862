// The plans of a small problem. Levels are budgets at even steps between the smallest one and keeping everything.
// Each is searched when an answer needs it. So more memory is never slower, and the smallest budget is exact.
#pragma once
#include <memory>
#include <optional>

#include "runtime/plan/search/search.h"

namespace cairn::plan {

// Answers do not depend on earlier questions.
class Levels {
 public:
  explicit Levels(Search&);
  ~Levels();
  Levels(const Levels&) = delete;
  Levels& operator=(const Levels&) = delete;

  // Nothing if the budget is less than the arena of lowest(). Never slower than the plan of a smaller budget.
  std::optional<Fit> fastest_within(int64_t budget);
  Fit lowest();

 private:
  class Found;
  std::unique_ptr<Found> found_;
};

}  // namespace cairn::plan
