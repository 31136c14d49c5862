// The trade-off curve: what the solver makes of a problem under many budgets, and what checkpointing by hand takes.
#pragma once
#include <string>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/report/baselines.h"

namespace cairn::plan {

struct SweepPoint {
  int64_t budget_bytes = 0, arena_bytes = 0;
  double seconds = 0, bound_seconds = 0, gap = 0, solve_seconds = 0;
  Totals totals;
  std::vector<int64_t> tier_arena_bytes;  // per link
};

struct Sweep {
  double keep_all_seconds = 0;
  std::vector<SweepPoint> points;  // by falling budget
  std::vector<Baseline> baselines;
};

// As many budgets as the problem's size allows within seconds: 16 for small ones, 10 above 5000 ops.
int usual_points(const Problem&);

// Budgets from the arena of the solver's fastest plan down to the smallest that any plan fits, closer
// together where memory is scarce; about `points` of them, and those that the baselines need. The problem's
// own budget is ignored.
std::vector<int64_t> sweep_budgets(const Problem&, const std::vector<Baseline>&, int points);

// What fits a budget fits a higher one: where the point before is faster than one of a higher budget, that one has
// its plan. Points by falling budget.
void let_more_be_no_slower(std::vector<SweepPoint>&);

// Solves once per budget, on up to 8 threads: the same points for any number. points < 0: usual_points. More memory is
// never slower. other: as of baselines().
Sweep sweep(const Problem&, int points = -1, const Problem* other = nullptr);

// "cairn.sweep/1".
std::string to_json(const Problem&, const Sweep&);

}  // namespace cairn::plan
