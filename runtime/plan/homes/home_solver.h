// Plans of problems in which values have homes: which of those that may stay on the device do, a plan of the rest
// by the search, and copies of what does not.
#pragma once
#include <map>
#include <memory>
#include <optional>

#include "runtime/plan/homes/placement.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {

class HomeSolver {
 public:
  explicit HomeSolver(const Problem&);
  ~HomeSolver();
  HomeSolver(const HomeSolver&) = delete;
  HomeSolver& operator=(const HomeSolver&) = delete;

  // 0: no limit. Nothing if no plan fits. Plans do not depend on what was asked before.
  std::optional<Plan> solve(int64_t budget_bytes);
  // With the lowest arena: everything that has a home lives there.
  Plan smallest();

 private:
  class Trials;

  void order_for(int64_t budget_bytes);
  Placement& placed(size_t stay);
  Plan finish(const Placement&, Plan, int64_t budget_bytes) const;

  const Problem& p_;
  // Values that may stay, those first that are dearest to fetch for their bytes; and in the order in which they are chosen.
  std::vector<int32_t> dearest_, order_;
  std::vector<bool> fits_;  // per value: its tier has room for it, beside those before it
  std::map<size_t, std::unique_ptr<Placement>> placed_;  // by how many of them stay
};

}  // namespace cairn::plan
