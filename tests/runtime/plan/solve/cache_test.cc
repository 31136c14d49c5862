#include "runtime/plan/cache.h"

#include <map>

#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

std::string text_of(const Problem& p, Plan plan) {
  plan.solve_seconds = 0;
  return to_json(p, plan, true);
}

template <class Planner>
std::string text_or_refusal(const Problem& p, const Planner& plan) {
  try {
    return text_of(p, plan(p));
  } catch (const Error& e) {
    return e.what();
  }
}

// In one cache: the same problem at several budgets, twice, and others between, more than it keeps.
TEST(SolverCache, PlansAreThoseOfSolve) {
  SolverCache cache;
  std::vector<Problem> problems;
  for (uint32_t seed = 1; seed <= 8; ++seed) problems.push_back(random_problem(seed, {.max_ops = 9}));
  problems.push_back(chain(90));  // too large to be searched for all budgets at once
  std::map<std::pair<size_t, int64_t>, std::string> solved;  // without a cache, of a problem under a budget
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < problems.size(); ++i) {
      Problem& p = problems[i];
      const int64_t most = keep_all_arena(p);
      for (const int64_t percent : {0, 95, 70, 70}) {
        p.budget_bytes = most / 100 * percent;
        std::string& wanted = solved[{i, percent}];
        if (wanted.empty()) wanted = text_or_refusal(p, [](const Problem& one) { return solve(one); });
        EXPECT_EQ(text_or_refusal(p, [&](const Problem& one) { return cache.solve(one); }), wanted)
            << p.budget_bytes;
        const auto within = cache.solve_within(p, p.budget_bytes);
        EXPECT_EQ(within ? text_of(p, *within) : "none",
                  wanted.starts_with("{") ? wanted : std::string("none"));
      }
    }
}

TEST(SolverCache, ProblemsThatDifferInAnythingAreDifferent) {
  SolverCache cache;
  Problem p = chain(6);
  p.budget_bytes = keep_all_arena(p) * 3 / 4;
  const double seconds = cache.solve(p).predicted_seconds;
  p.ops[2].seconds *= 2;
  EXPECT_EQ(cache.solve(p).predicted_seconds, solve(p).predicted_seconds);
  EXPECT_NE(cache.solve(p).predicted_seconds, seconds);
  p.values[2].name = "another";
  EXPECT_EQ(text_of(p, cache.solve(p)), text_of(p, solve(p)));
}

TEST(SolverCache, TheSmallestPlanIsTheSameAfterAQuickSearch) {
  Problem p = chain(90);
  for (size_t v = 0; v < p.values.size(); ++v) p.values[v].bytes += static_cast<int64_t>(v % 7) * 1280;
  ASSERT_GT(p.ops.size(), kSmallProblem);
  SolverCache fresh, asked;
  const int64_t budget = 20 * 14080;
  for (const bool roughly : {true, false})
    EXPECT_TRUE(roughly ? asked.solve_roughly(p, budget) : asked.solve_quickly(p, budget));
  EXPECT_EQ(asked.smallest(p).arena_bytes, fresh.smallest(p).arena_bytes);
  EXPECT_EQ(text_of(p, *asked.solve_within(p, budget)), text_of(p, *fresh.solve_within(p, budget)));
}

TEST(SolverCache, RefusesWhatSolveRefuses) {
  SolverCache cache;
  Problem p = chain(3);
  p.ops[0].seconds = -1;
  EXPECT_THROW(cache.solve(p), Error);
  EXPECT_THROW(cache.solve(p), Error);
}

// A bound that refusals may be spared by: no plan is below it.
TEST(SolverCache, NothingTakesLessThanTheLeastBudget) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Problem p = random_problem(seed, {.max_ops = 9});
    SolverCache cache;
    const int64_t least = least_budget(p);
    EXPECT_LE(least, cache.smallest(p).arena_bytes) << seed;
    if (least > 1) EXPECT_FALSE(cache.solve_within(p, least - 1)) << seed;
  }
}

}  // namespace
}  // namespace cairn::plan
