// Solves problems, and reuses what was found when the same problem comes again.
#include "runtime/plan/cache.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/os/clock.h"
#include "runtime/plan/explain.h"
#include "runtime/plan/residency/home_solver.h"
#include "runtime/plan/search/recent.h"
#include "runtime/plan/search/solver.h"

namespace cairn::plan {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

Problem all_away(const Problem& p) { return resolve_homes(p, std::vector<bool>(p.values.size(), true)); }

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// The solver of one problem, with or without values that live in a tier.
class SolverCache::Either {
 public:
  Either(const Problem& p, int threads) {
    if (has_homes(p))
      homes.emplace(p, threads);
    else
      solver.emplace(p, threads);
  }

  std::optional<Plan> solve(int64_t budget, Effort effort = Effort::kWhole, double limit = kUnlimited) {
    return homes ? homes->solve(budget, limit, effort) : solver->solve(budget, effort);
  }
  Plan smallest() { return homes ? homes->smallest() : solver->smallest(); }

  std::optional<Solver> solver;
  std::optional<HomeSolver> homes;
};

struct SolverCache::Solvers : Recent<Either> {
  using Recent::Recent;
};

SolverCache::SolverCache(int threads) : began_(now()), solvers_(std::make_unique<Solvers>(threads)) {}
SolverCache::~SolverCache() = default;

double SolverCache::age_seconds() const { return now() - began_; }

Plan SolverCache::solve(const Problem& p) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<Plan> plan = solvers_->ask(p, [&](Either& entry) { return entry.solve(p.budget_bytes); });
  if (!plan) refuse(p);
  plan->solve_seconds = since(start);
  return std::move(*plan);
}

std::optional<Plan> SolverCache::solve_within(const Problem& p, int64_t budget_bytes) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<Plan> plan = solvers_->ask(p, [&](Either& entry) { return entry.solve(budget_bytes); });
  if (plan) plan->solve_seconds = since(start);
  return plan;
}

std::optional<Plan> SolverCache::solve_below(const Problem& p, int64_t budget_bytes, double limit,
                                             bool quick) {
  const Effort effort = quick ? Effort::kQuick : Effort::kWhole;
  return solvers_->ask(p, [&](Either& entry) { return entry.solve(budget_bytes, effort, limit); });
}

double SolverCache::least_seconds(const Problem& p, int64_t budget_bytes, double enough) {
  return solvers_->ask(p, [&](Either& entry) {
    return entry.homes ? entry.homes->least_seconds(budget_bytes, enough)
                       : entry.solver->least_seconds(budget_bytes);
  });
}

double SolverCache::least_seconds_behind(const Problem& p, int64_t budget_bytes,
                                         const std::vector<double>& earliest, bool home_costs) {
  return solvers_->ask(p, [&](Either& entry) {
    require(entry.homes.has_value(), Code::kInternal, "nothing lives in a tier");
    return entry.homes->least_seconds_behind(budget_bytes, earliest, home_costs);
  });
}

std::optional<Plan> SolverCache::solve_quickly(const Problem& p, int64_t budget_bytes) {
  return solvers_->ask(p, [&](Either& entry) { return entry.solve(budget_bytes, Effort::kQuick); });
}

std::optional<Plan> SolverCache::solve_roughly(const Problem& p, int64_t budget_bytes) {
  return solvers_->ask(p, [&](Either& entry) { return entry.solve(budget_bytes, Effort::kRough); });
}

Plan SolverCache::smallest(const Problem& p) {
  return solvers_->ask(p, [](Either& entry) { return entry.smallest(); });
}

void SolverCache::refuse(const Problem& p) {
  const Plan lowest = smallest(p);
  std::vector<bool> away;  // what that plan keeps is persistent
  for (size_t v = 0; v < p.values.size(); ++v)
    away.push_back(lowest.home_offsets.empty() || lowest.home_offsets[v] >= 0);
  const Problem resolved = resolve_homes(p, away);
  fail_over_budget(resolved, Index(resolved), lowest);
}

int64_t least_budget(const Problem& p) {
  const Problem away = all_away(p);
  return least_bytes(away, Index(away));
}

Plan solve(const Problem& p) { return SolverCache().solve(p); }

std::vector<std::optional<Plan>> solve_all(const Problem& p, const std::vector<int64_t>& budgets) {
  SolverCache cache;
  std::vector<std::optional<Plan>> plans;
  for (const int64_t budget : budgets) plans.push_back(cache.solve_within(p, budget));
  return plans;
}

}  // namespace cairn::plan
