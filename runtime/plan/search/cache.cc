// Solving problems one by one, and solving the same ones again.
#include "runtime/plan/cache.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/os/clock.h"
#include "runtime/plan/explain.h"
#include "runtime/plan/homes/home_solver.h"
#include "runtime/plan/search/solver.h"

namespace cairn::plan {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

bool equal_but_for_the_budget(const Problem& a, const Problem& b) {
  return a.backward_begin == b.backward_begin && a.links == b.links && a.regions == b.regions &&
         a.values == b.values && a.ops == b.ops;
}

Problem all_away(const Problem& p) { return resolve_homes(p, std::vector<bool>(p.values.size(), true)); }

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

struct SolverCache::Entry {
  explicit Entry(const Problem& problem) : p(problem) {
    if (has_homes(p))
      homes.emplace(p);
    else
      solver.emplace(p);
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  std::optional<Plan> solve(int64_t budget, Effort effort = Effort::kWhole, double limit = kUnlimited) {
    return homes ? homes->solve(budget, limit, effort) : solver->solve(budget, effort);
  }
  Plan smallest() { return homes ? homes->smallest() : solver->smallest(); }

  const Problem p;
  std::optional<Solver> solver;
  std::optional<HomeSolver> homes;
};

SolverCache::SolverCache() : began_(now()) {}
SolverCache::~SolverCache() = default;

double SolverCache::age_seconds() const { return now() - began_; }

SolverCache::Entry& SolverCache::entry(const Problem& p) {
  const auto known = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return equal_but_for_the_budget(entry->p, p); });
  if (known != entries_.end()) {
    std::rotate(entries_.begin(), known, known + 1);
  } else {
    check(p);
    entries_.insert(entries_.begin(), std::make_unique<Entry>(p));
    if (entries_.size() > kMaxProblems) entries_.pop_back();
  }
  return *entries_.front();
}

// What fails half-way (no memory) is forgotten.
template <class Ask>
auto SolverCache::ask(const Problem& p, Ask question) {
  Entry& asked = entry(p);
  try {
    return question(asked);
  } catch (...) {
    entries_.erase(entries_.begin());
    throw;
  }
}

Plan SolverCache::solve(const Problem& p) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<Plan> plan = ask(p, [&](Entry& entry) { return entry.solve(p.budget_bytes); });
  if (!plan) refuse(p);
  plan->solve_seconds = since(start);
  return std::move(*plan);
}

std::optional<Plan> SolverCache::solve_within(const Problem& p, int64_t budget_bytes) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<Plan> plan = ask(p, [&](Entry& entry) { return entry.solve(budget_bytes); });
  if (plan) plan->solve_seconds = since(start);
  return plan;
}

std::optional<Plan> SolverCache::solve_below(const Problem& p, int64_t budget_bytes, double limit,
                                             bool quick) {
  const Effort effort = quick ? Effort::kQuick : Effort::kWhole;
  return ask(p, [&](Entry& entry) { return entry.solve(budget_bytes, effort, limit); });
}

double SolverCache::least_seconds(const Problem& p, int64_t budget_bytes, double enough) {
  return ask(p, [&](Entry& entry) {
    return entry.homes ? entry.homes->least_seconds(budget_bytes, enough)
                       : entry.solver->least_seconds(budget_bytes);
  });
}

double SolverCache::least_seconds_behind(const Problem& p, int64_t budget_bytes,
                                         const std::vector<double>& earliest, bool home_costs) {
  return ask(p, [&](Entry& entry) {
    require(entry.homes.has_value(), Code::kInternal, "nothing lives in a tier");
    return entry.homes->least_seconds_behind(budget_bytes, earliest, home_costs);
  });
}

std::optional<Plan> SolverCache::solve_quickly(const Problem& p, int64_t budget_bytes) {
  return ask(p, [&](Entry& entry) { return entry.solve(budget_bytes, Effort::kQuick); });
}

std::optional<Plan> SolverCache::solve_roughly(const Problem& p, int64_t budget_bytes) {
  return ask(p, [&](Entry& entry) { return entry.solve(budget_bytes, Effort::kRough); });
}

Plan SolverCache::smallest(const Problem& p) {
  return ask(p, [](Entry& entry) { return entry.smallest(); });
}

void SolverCache::refuse(const Problem& p) {
  const Plan lowest = smallest(p);
  std::vector<bool> away;  // what stays in that plan is persistent
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
