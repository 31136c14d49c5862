#include "runtime/report/sweep.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/base/checked.h"
#include "runtime/base/error.h"
#include "runtime/plan/cache.h"
#include "runtime/plan/in_parallel.h"
#include "runtime/plan/residency/residence.h"
#include "runtime/plan/text.h"

namespace cairn::plan {
namespace {

std::optional<Plan> plan_within(Problem& p, int64_t budget, int threads, int64_t* smallest = nullptr) {
  p.budget_bytes = budget;
  try {
    return SolverCache(threads).solve(p);
  } catch (const Error& e) {
    if (e.code() != Code::kOverBudget) throw;
    if (smallest != nullptr && e.fault()) *smallest = static_cast<int64_t>(e.fault()->smallest_budget_bytes);
    return {};
  }
}

constexpr int kMostSweepThreads = 8;

}  // namespace

int usual_points(const Problem& p) {
  const size_t ops = p.ops.size();
  return ops <= 1000 ? 16 : ops <= 5000 ? 12 : ops <= 50'000 ? 10 : 5;
}

std::vector<int64_t> sweep_budgets(const Problem& problem, const std::vector<Baseline>& by_hand, int points) {
  Problem p = problem;
  p.budget_bytes = 0;
  const int64_t most = solve(p).arena_bytes, fixed = p.persistent_bytes();
  int64_t least = most;
  if (plan_within(p, std::max<int64_t>(1, fixed), kMostThreads, &least)) least = fixed;
  std::vector<int64_t> budgets = {most, least};
  for (const Baseline& b : by_hand)
    if (b.arena_bytes > least && b.arena_bytes < most) budgets.push_back(b.arena_bytes);
  const size_t wanted = budgets.size();
  const auto high = static_cast<double>(most - fixed),
             low = std::max(1.0, static_cast<double>(least - fixed));
  for (int k = 1; k + 1 < points && most > least; ++k) {
    const double share = static_cast<double>(k) / (points - 1);
    const double room = (low * std::pow(high / low, share) + low + (high - low) * share) / 2;
    auto budget = fixed + static_cast<int64_t>(room);
    if (high - low > 1000.0 * kPageBytes) budget = budget / kPageBytes * kPageBytes;
    // Close to one that is wanted anyway, it would tell nothing new.
    const bool near = std::any_of(budgets.begin(), budgets.begin() + static_cast<int64_t>(wanted),
                                  [&](int64_t b) { return std::abs(b - budget) <= (most - least) / 100; });
    if (!near && budget > least && budget < most) budgets.push_back(budget);
  }
  std::erase(budgets, 0);
  std::sort(budgets.begin(), budgets.end(), std::greater<>());
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  return budgets;
}

void let_more_be_no_slower(std::vector<SweepPoint>& points) {
  for (size_t k = points.size(); k-- > 1;) {
    const SweepPoint& less = points[k];
    SweepPoint& more = points[k - 1];
    if (more.seconds <= less.seconds) continue;
    SweepPoint same = less;
    same.budget_bytes = more.budget_bytes;
    same.bound_seconds = more.bound_seconds;
    same.gap = more.bound_seconds > 0 ? (less.seconds - more.bound_seconds) / more.bound_seconds : 0;
    same.solve_seconds = more.solve_seconds;
    more = std::move(same);
  }
}

Sweep sweep(const Problem& problem, int points, const Problem* other) {
  Sweep found;
  found.baselines = baselines(problem, other);
  for (const Op& op : problem.ops) found.keep_all_seconds += op.seconds;
  const std::vector<int64_t> budgets =
      sweep_budgets(problem, found.baselines, points < 0 ? usual_points(problem) : points);
  std::vector<std::optional<Plan>> plans(budgets.size());
  if (problem.ops.size() <= kSmallProblem) {
    plans = solve_all(problem, budgets);  // one search for all
  } else {
    in_parallel(std::min(kMostSweepThreads, usable_processors()), budgets.size(), [&](size_t k) {
      Problem p = problem;
      const size_t at = budgets.size() - 1 - k;  // the smallest budgets take longest
      plans[at] = plan_within(p, budgets[at], 1);
      if (plans[at]) plans[at]->steps.clear();
    });
  }
  for (size_t k = 0; k < budgets.size(); ++k)
    if (const auto& plan = plans[k])
      found.points.push_back({budgets[k], plan->arena_bytes, plan->predicted_seconds, plan->bound_seconds,
                              plan->gap, plan->solve_seconds, plan->totals, plan->tier_arena_bytes});
  if (!has_homes(problem)) let_more_be_no_slower(found.points);  // else more than the seconds counts
  return found;
}

std::string to_json(const Problem& p, const Sweep& sweep) {
  std::string out = "{ \"format\": \"cairn.sweep/1\", \"keep_all_seconds\": ";
  const auto field = [&](std::string_view key, auto number) {
    out += cat(", \"", key, "\": ");
    append_number(out, number);
  };
  append_number(out, sweep.keep_all_seconds);
  field("persistent_bytes", p.persistent_bytes());
  out += ",\n\"points\": [";
  for (size_t k = 0; k < sweep.points.size(); ++k) {
    const SweepPoint& point = sweep.points[k];
    out += k ? ",\n  {" : "\n  {";
    out += "\"budget_bytes\": ";
    append_number(out, point.budget_bytes);
    field("arena_bytes", point.arena_bytes);
    field("predicted_seconds", point.seconds);
    field("bound_seconds", point.bound_seconds);
    field("gap", point.gap);
    field("solve_seconds", point.solve_seconds);
    field("keep_bytes", point.totals.keep_bytes);
    field("recompute_bytes", point.totals.recompute_bytes);
    out += ", \"tiers\": {";
    for (size_t t = 0; t < p.links.size(); ++t) {
      if (t) out += ", ";
      append_string(out, p.links[t].tier);
      out += ": {\"offload_bytes\": ";
      append_number(out, point.totals.offload_bytes[t]);
      field("arena_bytes", point.tier_arena_bytes[t]);
      out += "}";
    }
    out += "}}";
  }
  out += "],\n\"baselines\": [";
  for (size_t k = 0; k < sweep.baselines.size(); ++k) {
    const Baseline& b = sweep.baselines[k];
    out += k ? ",\n  {\"name\": " : "\n  {\"name\": ";
    append_string(out, b.name);
    out += ", \"words\": ";
    append_string(out, b.words);
    field("arena_bytes", b.arena_bytes);
    field("peak_bytes", b.peak_bytes);
    field("predicted_seconds", b.seconds);
    out += "}";
  }
  return out + "] }\n";
}

}  // namespace cairn::plan
