#include "runtime/plan/explain.h"

#include <gtest/gtest.h>

#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

TEST(Explain, EveryValueHasADecisionAReasonAndALifetime) {
  Problem p = chain(8, 6400, 2);
  p.budget_bytes = smallest_budget(p);
  const Plan plan = solve(p);
  ASSERT_EQ(plan.values.size(), p.values.size());
  for (size_t v = 0; v < p.values.size(); ++v) {
    EXPECT_FALSE(plan.values[v].reason.empty());
    EXPECT_GE(plan.values[v].offset, 0);
    EXPECT_LE(plan.values[v].first_step, plan.values[v].last_step);
    EXPECT_EQ(plan.values[v].decision == Decision::kPersistent, p.values[v].persistent);
  }
  EXPECT_EQ(plan.totals.keep_bytes + plan.totals.recompute_bytes, 8 * 6400);
  EXPECT_GT(plan.totals.recompute_bytes, 0);
}

TEST(Explain, NamesThePolicy) {
  Problem p = chain(6, 6400, 3, Policy::kRecompute);
  const Plan plan = solve(p);
  EXPECT_EQ(plan.values[1].reason, "policy RECOMPUTE of region 'r0'");
  EXPECT_EQ(plan.values[1].decision, Decision::kRecompute);
  EXPECT_EQ(plan.values[3].decision, Decision::kKeep);
  EXPECT_NE(plan.values[3].reason.find("recomputed for"), std::string::npos);
}

TEST(Explain, NoReasonSpeaksOfABudgetThatIsNotThere) {
  Problem p = chain(6, 6400, 1, Policy::kOffload);
  for (size_t r = 0; r < p.regions.size(); r += 2) p.regions[r].policy = Policy::kPlannerDecides;
  p.links.push_back({"host", 0.01, 1000, 1000, 1, int64_t{1} << 40});
  const Plan plan = solve(p);
  EXPECT_GT(plan.totals.recompute_bytes, 0);
  for (const ValuePlan& value : plan.values) EXPECT_EQ(value.reason.find("budget"), std::string::npos);
}

TEST(Explain, OverBudgetNamesTheSmallestBudgetTheOpAndTheLargestValues) {
  Problem p = chain(4);
  p.budget_bytes = 1000;
  try {
    solve(p);
    FAIL();
  } catch (const Error& e) {
    ASSERT_NE(e.fault(), nullptr);
    EXPECT_EQ(e.code(), Code::kOverBudget);
    EXPECT_EQ(e.fault()->budget_bytes, 1000u);
    EXPECT_EQ(e.fault()->in_use_bytes, 128u);
    const std::string what = e.what();
    EXPECT_NE(what.find(std::to_string(e.fault()->smallest_budget_bytes)), std::string::npos) << what;
    EXPECT_NE(what.find("at op '"), std::string::npos) << what;
    EXPECT_NE(what.find("(6400)"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace cairn::plan
