#include "runtime/report/sweep.h"

#include <gtest/gtest.h>

#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

TEST(Sweep, FromKeepAllDownToTheSmallest) {
  const Problem p = chain(12, 64000, 2);
  const Sweep found = sweep(p, 6);
  ASSERT_GE(found.points.size(), 6u);
  EXPECT_EQ(found.points.front().budget_bytes, keep_all_arena(p));
  EXPECT_EQ(found.points.back().budget_bytes, smallest_budget(p));
  EXPECT_DOUBLE_EQ(found.points.front().seconds, found.keep_all_seconds);
  for (size_t k = 0; k < found.points.size(); ++k) {
    const SweepPoint& point = found.points[k];
    EXPECT_LE(point.arena_bytes, point.budget_bytes);
    EXPECT_LE(point.bound_seconds, point.seconds * (1 + 1e-9));
    if (k == 0) continue;
    EXPECT_LT(point.budget_bytes, found.points[k - 1].budget_bytes);
    EXPECT_GE(point.seconds, found.points[k - 1].seconds);
  }
  // The bytes that people need by hand are among the budgets, so that they can be compared.
  for (const Baseline& b : found.baselines)
    EXPECT_TRUE(std::any_of(found.points.begin(), found.points.end(), [&](const SweepPoint& point) {
      return point.budget_bytes == b.arena_bytes;
    })) << b.name;
}

TEST(Sweep, MoreMemoryIsNeverSlower) {
  std::vector<SweepPoint> points(4);
  const double seconds[] = {10, 14, 12, 20}, bounds[] = {10, 11, 11.5, 16};
  for (size_t k = 0; k < points.size(); ++k) {
    points[k].budget_bytes = static_cast<int64_t>(400 - 100 * k);
    points[k].arena_bytes = points[k].budget_bytes - 1;
    points[k].seconds = seconds[k];
    points[k].bound_seconds = bounds[k];
    points[k].solve_seconds = static_cast<double>(k);
  }
  let_more_be_no_slower(points);
  EXPECT_EQ(points[0].seconds, 10);
  EXPECT_EQ(points[1].seconds, 12);
  EXPECT_EQ(points[1].budget_bytes, 300);
  EXPECT_EQ(points[1].arena_bytes, 199) << "the plan of the budget below";
  EXPECT_DOUBLE_EQ(points[1].gap, 1.0 / 11);
  EXPECT_EQ(points[1].solve_seconds, 1);
  EXPECT_EQ(points[2].seconds, 12);
  EXPECT_EQ(points[3].seconds, 20);
}

TEST(Sweep, TheProblemsBudgetIsIgnoredAndItsPoliciesAreNot) {
  Problem p = chain(6, 6400, 2, Policy::kKeep);
  p.budget_bytes = 1;
  const Sweep kept = sweep(p, 5);
  EXPECT_EQ(kept.points.size(), 1u) << "nothing may be given up";
  p = chain(6, 6400, 2, Policy::kRecompute);
  const Sweep again = sweep(p, 5);
  EXPECT_LT(again.points.front().budget_bytes, kept.points.front().budget_bytes);
  EXPECT_EQ(again.baselines[0].arena_bytes, kept.baselines[0].arena_bytes);
}

TEST(Sweep, EachTimeTheSame) {
  const Problem p = random_problem(7);
  Sweep a = sweep(p, 4), b = sweep(p, 4);
  for (Sweep* s : {&a, &b})
    for (SweepPoint& point : s->points) point.solve_seconds = 0;
  EXPECT_EQ(to_json(p, a), to_json(p, b));
}

TEST(Sweep, JsonNamesEveryTier) {
  Maker m;
  m.value("x", 64, true).value("a", 4096).value("g", 4096).link("ho\"st", 1e6);
  m.op("f", 1, {"x"}, {"a"}).backward_begin().op("b", 1, {"a"}, {"g"});
  const std::string json = to_json(m.p, sweep(m.p, 3));
  for (const char* part :
       {"\"format\": \"cairn.sweep/1\"", "\"ho\\\"st\": {\"offload_bytes\": 0", "\"keep_all\"",
        "\"per_layer\"", "\"sqrt_n\"", "\"bound_seconds\"", "\"persistent_bytes\": 64"})
    EXPECT_NE(json.find(part), std::string::npos) << part;
}

TEST(Sweep, NothingToSweep) {
  const Sweep found = sweep(Problem(), 8);
  EXPECT_TRUE(found.points.empty());
  EXPECT_EQ(found.keep_all_seconds, 0);
}

TEST(Sweep, LargeProblemsGetFewerBudgets) {
  Problem p;
  EXPECT_EQ(usual_points(p), 16);
  p.ops.resize(20'000);
  EXPECT_LE(usual_points(p), 10);
}

}  // namespace
}  // namespace cairn::plan
