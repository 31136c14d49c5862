#include "runtime/plan/search/solver.h"

#include <gtest/gtest.h>

#include <map>

#include "bench/plan/irregular.h"
#include "runtime/plan/cache.h"
#include "runtime/plan/index.h"
#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

TEST(Solver, KeepsEverythingThatFits) {
  const Problem p = chain(6);
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_EQ(plan.arena_bytes, 128 + 7 * 6400);
  EXPECT_DOUBLE_EQ(plan.predicted_seconds, plan.keep_all_seconds);
  EXPECT_EQ(plan.gap, 0);
  EXPECT_EQ(plan.totals.recompute_bytes, 0);
}

// One block too many: making any one of a1..a5 again takes 1 s, and the bound says the same.
TEST(Solver, MakesOneValueAgainWhereOneIsTooMany) {
  Problem p = chain(6);
  p.budget_bytes = keep_all_arena(p) - 1;
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_DOUBLE_EQ(plan.predicted_seconds, plan.keep_all_seconds + 1);
}

TEST(Solver, GroupsOfAChainReachRootMemory) {
  const Problem p = chain(64);
  EXPECT_LE(smallest_budget(p), 128 + 22 * 6400);
}

// Small graphs without backward, as a host plans many of: seconds each would be too many.
TEST(Solver, FewForwardOpsAreSearchedLittle) {
  for (const int ops : {3, 6, 12}) {
    Maker maker;
    maker.value("x0", 64, true);
    for (int i = 1; i <= ops; ++i) {
      const auto name = [](int k) { return "x" + std::to_string(k); };
      maker.value(name(i), 64 * i).op("f" + std::to_string(i), 1, {name(i - 1), name(i / 2)}, {name(i)});
    }
    maker.backward_begin();
    Solver solver(maker.p);
    const int64_t least = solver.smallest().arena_bytes;
    for (int64_t budget = least; budget < keep_all_arena(maker.p); budget += 64) {
      const auto plan = solver.solve(budget);
      ASSERT_TRUE(plan.has_value()) << ops << " ops, " << budget << " bytes";
      maker.p.budget_bytes = budget;
      EXPECT_EQ(violation(maker.p, *plan), "");
    }
    EXPECT_LE(solver.work(), 200'000) << ops << " ops";
  }
}

// No plan comes near the bound where a policy sends values over a slow link: it is not searched for at every budget.
TEST(Solver, WhereTheBoundIsFarItIsNotLookedForForever) {
  Problem p = chain(28, 6400, 1, Policy::kOffload);
  p.links.push_back({"host", 0.01, 2000, 2000, 1, int64_t{1} << 40});
  Solver solver(p);
  p.budget_bytes = solver.smallest().arena_bytes + 2 * 6400;
  const auto plan = solver.solve(p.budget_bytes);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(violation(p, *plan), "");
  EXPECT_GT(plan->gap, 0.1);
  EXPECT_LE(solver.work(), 150'000'000) << p.ops.size() << " ops";
}

// Nor is anything saved by searching for budgets where there is none, or one beyond all bytes; of few ops, and of many.
TEST(Solver, WithoutABudgetPoliciesAreSearchedLittle) {
  for (const int layers : {28, 100}) {
    Problem p = chain(layers, 6400, 1, Policy::kOffload);
    for (size_t r = 0; r < p.regions.size(); r += 2) p.regions[r].policy = Policy::kPlannerDecides;
    p.links.push_back({"host", 0.01, 2000, 2000, 1, int64_t{1} << 40});
    Solver solver(p);
    const auto plan = solver.solve(0);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(violation(p, *plan), "");
    EXPECT_LE(solver.work(), 40'000 * layers);
    EXPECT_TRUE(solver.solve(INT64_MAX, Effort::kQuick).has_value());
  }
}

// With room for everything in a tier the smallest budget is what one op needs, whatever may be made again.
TEST(Solver, SendingEverythingTakesWhatTheLargestOpNeeds) {
  // Searched for all budgets, and for one.
  for (const int layers : support::cases<int>({8, 90}, 2)) {
    for (const bool again : {true, false}) {
      Problem p = chain(layers);
      for (Op& op : p.ops) op.recomputable = again;
      p.links.push_back({"host", 0.01, 6400, 6400, 1, int64_t{1} << 40});
      const int64_t least = smallest_budget(p);
      EXPECT_EQ(least, least_budget(p)) << layers << " layers";
      p.budget_bytes = least;
      EXPECT_EQ(violation(p, solve(p)), "");
      if (layers > 8) continue;
      // A tier with room for half leaves the other half on the device, or made again.
      p.links[0].capacity_bytes = layers * 6400 / 2;
      const int64_t half = smallest_budget(p);
      EXPECT_GT(half, again ? 0 : layers * 6400 / 2);
      p.budget_bytes = half + 6400;
      EXPECT_EQ(violation(p, solve(p)), "");
    }
  }
}

TEST(Solver, ALinkHidesWhatRecomputeWouldCost) {
  Problem p = chain(12);
  p.links.push_back({"host", 0, 6400 * 2, 6400 * 2, 1, 1 << 20});
  p.budget_bytes = 128 + 10 * 6400;
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_DOUBLE_EQ(plan.predicted_seconds, plan.keep_all_seconds);
  EXPECT_GT(plan.totals.offload_bytes[0], 0);
}

// Budgets that the search aims at are shares of all bytes: no product on the way there is too large.
TEST(Solver, BytesNearTheEndOfTheirRangeArePlannedAsFewAre) {
  constexpr int64_t kTimes = int64_t{1} << 42;
  Problem few = chain(16), many = few;
  for (Value& v : many.values) v.bytes *= kTimes;
  const int64_t most = keep_all_arena(few), least = smallest_budget(few);
  ASSERT_GT(most * kTimes, INT64_MAX / 28);
  EXPECT_EQ(keep_all_arena(many), most * kTimes);
  EXPECT_EQ(smallest_budget(many), least * kTimes);
  std::vector<int64_t> budgets, times;
  for (int64_t budget = least; budget <= most; budget += (most - least) / 7) {
    budgets.push_back(budget);
    times.push_back(budget * kTimes);
  }
  const auto wanted = solve_all(few, budgets), found = solve_all(many, times);
  for (size_t i = 0; i < budgets.size(); ++i) {
    ASSERT_TRUE(wanted[i] && found[i]) << budgets[i];
    many.budget_bytes = times[i];
    EXPECT_EQ(violation(many, *found[i]), "");
    EXPECT_DOUBLE_EQ(found[i]->predicted_seconds, wanted[i]->predicted_seconds) << budgets[i];
    EXPECT_DOUBLE_EQ(found[i]->gap, wanted[i]->gap) << budgets[i];
    EXPECT_EQ(found[i]->arena_bytes, wanted[i]->arena_bytes * kTimes) << budgets[i];
  }
}

TEST(Solver, EmptyAndOneSidedProblems) {
  Problem p;
  EXPECT_EQ(violation(p, solve(p)), "");
  p = chain(3);
  p.backward_begin = 0;
  EXPECT_EQ(violation(p, solve(p)), "");
  p.backward_begin = static_cast<int32_t>(p.ops.size());
  EXPECT_EQ(violation(p, solve(p)), "");
  p.values[0].bytes = p.values.back().bytes = 0;
  EXPECT_EQ(violation(p, solve(p)), "");
}

TEST(Solver, IsDeterministic) {
  Problem p = random_problem(7);
  p.budget_bytes = smallest_budget(p);
  Plan a = solve(p), b = solve(p);
  a.solve_seconds = b.solve_seconds = 0;
  EXPECT_EQ(to_json(p, a, true), to_json(p, b, true));
}

struct Policies : testing::TestWithParam<Policy> {};

TEST_P(Policies, AreObeyed) {
  Problem p = chain(9, 6400, 3, GetParam());
  p.links.push_back({"disk", 0, 1e6, 1e6, 1, 1 << 20});
  p.links.push_back({"host", 0, 1e6, 1e6, 1, 1 << 20});
  for (Region& r : p.regions) r.offload_tier = 1;
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  for (int i = 1; i <= 8; ++i) {
    const ValuePlan& v = plan.values[i];
    switch (GetParam()) {
      case Policy::kRecompute:
        EXPECT_EQ(v.decision, i % 3 ? Decision::kRecompute : Decision::kKeep) << i;
        break;
      case Policy::kOffload:
        EXPECT_EQ(v.decision, Decision::kOffload) << i;
        EXPECT_EQ(v.tier, 1);
        break;
      default:
        EXPECT_EQ(v.decision, Decision::kKeep) << i;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Policies,
                         testing::Values(Policy::kPlannerDecides, Policy::kKeep, Policy::kRecompute,
                                         Policy::kOffload));

TEST(Solver, KeepIsKeptUnderAnyBudget) {
  Problem p = chain(9, 6400, 3, Policy::kKeep);
  EXPECT_EQ(smallest_budget(p), keep_all_arena(p));
}

TEST(Solver, OffloadIsObeyedOverASlowLink) {
  Problem p = chain(6, 6400, 3, Policy::kOffload);
  p.links.push_back({"disk", .1, 100, 100, .5, 1 << 20});
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_EQ(plan.totals.offload_bytes[0], 6 * 6400);
}

constexpr uint32_t kSeeds = 25;  // the planner's own program of checks tries many more

// Every plan is valid and says the truth about itself.
TEST(SolverProperty, PlansAreValidAtEveryBudget) {
  for (const uint32_t seed : support::seeds(kSeeds)) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(seed);
    const int64_t most = keep_all_arena(p), least = smallest_budget(p);
    ASSERT_TRUE(least <= most);
    for (int64_t budget : {int64_t{0}, most, least, least + (most - least) / 2}) {
      p.budget_bytes = budget;
      if (budget == 0 && most == 0) continue;
      const Plan plan = solve(p);
      const std::string wrong = violation(p, plan);
      ASSERT_EQ(wrong, "");
      ASSERT_TRUE(budget == 0 || plan.arena_bytes <= budget);
    }
  }
}

TEST(SolverProperty, TheSmallestBudgetIsExact) {
  for (const uint32_t seed : support::seeds(kSeeds)) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(seed);
    p.budget_bytes = smallest_budget(p);
    if (p.budget_bytes == p.persistent_bytes()) continue;  // nothing to plan
    ASSERT_TRUE(solve(p).arena_bytes == p.budget_bytes);
    if (--p.budget_bytes == 0) continue;
    try {
      solve(p);
      FAIL() << "one byte less was accepted";
    } catch (const Error& e) {
      ASSERT_TRUE(e.code() == Code::kOverBudget);
      ASSERT_TRUE(static_cast<int64_t>(e.fault()->smallest_budget_bytes) == p.budget_bytes + 1);
    }
  }
}

TEST(SolverProperty, LinksDoNotRaiseTheSmallestBudget) {
  for (const uint32_t seed : support::seeds(kSeeds)) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(seed, {.regions = false});
    Problem alone = p;
    alone.links.clear();
    EXPECT_LE(smallest_budget(p), smallest_budget(alone));
  }
}

TEST(SolverProperty, MoreMemoryIsNeverSlower) {
  for (const uint32_t seed : support::seeds(kSeeds)) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(seed);
    const int64_t most = keep_all_arena(p), least = smallest_budget(p);
    double before = 1e300;
    std::vector<int64_t> budgets;
    for (int k = 0; k <= 6; ++k) budgets.push_back(std::max<int64_t>(1, least + (most - least) * k / 6));
    for (const std::optional<Plan>& plan : solve_all(p, budgets)) {
      if (!plan) continue;
      const double seconds = plan->predicted_seconds;
      ASSERT_TRUE(seconds <= before * (1 + 1e-12));
      before = seconds;
    }
  }
}

TEST(SolverProperty, ManyBudgetsAtOnceAreTheSamePlans) {
  for (const uint32_t seed : support::seeds(kSeeds)) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(seed);
    const int64_t most = keep_all_arena(p), least = smallest_budget(p);
    const std::vector<int64_t> budgets = {most, least + (most - least) / 2, least,
                                          std::max<int64_t>(1, least - 1)};
    const std::vector<std::optional<Plan>> plans = solve_all(p, budgets);
    for (size_t k = 0; k < budgets.size(); ++k) {
      p.budget_bytes = budgets[k];
      if (budgets[k] == 0) continue;
      if (!plans[k]) {
        EXPECT_THROW(solve(p), Error);
        continue;
      }
      Plan alone = solve(p), together = *plans[k];
      alone.solve_seconds = together.solve_seconds = 0;
      EXPECT_EQ(to_json(p, alone, true), to_json(p, together, true));
    }
  }
}

// Ops that may not run again run once; values of KEEP regions never come back; those of RECOMPUTE regions are
// not copied.
TEST(SolverProperty, PoliciesHold) {
  for (const uint32_t seed : support::seeds(kSeeds)) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(seed);
    p.budget_bytes = smallest_budget(p);
    if (p.budget_bytes == 0) continue;
    const Plan plan = solve(p);
    const Index index(p);
    for (size_t v = 0; v < p.values.size(); ++v) {
      if (index.maker[v] < 0 || index.maker[v] >= p.backward_begin) continue;
      int32_t region = p.ops[index.maker[v]].region;
      while (region >= 0 && p.regions[region].policy == Policy::kPlannerDecides)
        region = p.regions[region].parent;
      if (region < 0) continue;
      const Decision d = plan.values[v].decision;
      if (p.regions[region].policy == Policy::kKeep)
        ASSERT_TRUE(d == Decision::kKeep || d == Decision::kPersistent);
      if (p.regions[region].policy == Policy::kRecompute) ASSERT_TRUE(d != Decision::kOffload);
    }
  }
}

#ifndef CAIRN_SANITIZED  // a fixed amount of search: minutes
// Above kSmallProblem each budget is searched for itself; what was searched before must not show.
Problem uneven_chain(int layers) {
  Problem p = chain(layers, 64 * 1024);
  for (size_t v = 0; v < p.values.size(); ++v) p.values[v].bytes += 64 * static_cast<int64_t>(v * 37 % 101);
  return p;
}

TEST(SolverLarge, ManyBudgetsAtOnceAreTheSamePlans) {
  Problem p = uneven_chain(90);
  ASSERT_GT(p.ops.size(), kSmallProblem);
  const int64_t most = keep_all_arena(p);
  const std::vector<int64_t> budgets = {most / 3, most / 16, most / 3};
  const std::vector<std::optional<Plan>> plans = solve_all(p, budgets);
  std::map<int64_t, std::optional<Plan>> searched_alone;
  for (size_t k = 0; k < budgets.size(); ++k) {
    SCOPED_TRACE(budgets[k]);
    if (!searched_alone.contains(budgets[k])) searched_alone[budgets[k]] = solve_all(p, {budgets[k]})[0];
    const std::optional<Plan>& alone = searched_alone[budgets[k]];
    ASSERT_EQ(alone.has_value(), plans[k].has_value());
    if (!alone) continue;
    Plan a = *alone, b = *plans[k];
    a.solve_seconds = b.solve_seconds = 0;
    EXPECT_EQ(to_json(p, a, true), to_json(p, b, true));
  }
}

// One cache answers the three questions. SolverCache.PlansAreThoseOfSolve checks that solve() answers the same.
TEST(SolverLarge, TheSmallestBudgetIsExact) {
  SolverCache cache;
  Problem p = uneven_chain(90);
  p.budget_bytes = p.persistent_bytes() + 1;
  try {
    cache.solve(p);
    FAIL() << "one byte for all activations";
  } catch (const Error& e) {
    ASSERT_EQ(e.code(), Code::kOverBudget);
    p.budget_bytes = static_cast<int64_t>(e.fault()->smallest_budget_bytes);
  }
  const Plan plan = cache.solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_LE(plan.arena_bytes, p.budget_bytes);
  p.budget_bytes -= 4096;
  EXPECT_THROW(cache.solve(p), Error);
}

#endif

TEST(Solver, AThousandLayersTakeSeconds) {
  Problem p = chain(1000, 6400, 10);
  p.budget_bytes = 128 + 300 * 6400;
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_LT(plan.gap, .03);
  double before = 1e300;
  const int blocks[] = {150, 250, 400, 700, 990};
  for (size_t i = 0; i < std::size(blocks); i += static_cast<size_t>(support::stride(4))) {
    p.budget_bytes = 128 + blocks[i] * 6400;
    const double seconds = solve(p).predicted_seconds;
    EXPECT_LE(seconds, before);
    before = seconds;
  }
}

}  // namespace
}  // namespace cairn::plan
