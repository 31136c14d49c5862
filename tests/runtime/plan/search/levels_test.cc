#include "runtime/plan/search/levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "runtime/plan/search/solver.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

// A chain of blocks as a transformer has them: what is cheap to make again for its bytes lies beside what is dear.
Problem blocks(int count, bool link) {
  std::mt19937 random(static_cast<uint32_t>(count));
  Problem p = chain(count);
  for (Value& value : p.values)
    if (!value.persistent) value.bytes *= 1 + static_cast<int64_t>(random() % 4);
  for (Op& op : p.ops) op.seconds *= 1 + static_cast<double>(random() % 5);
  if (link) p.links.push_back({"host", 0.01, 9600, 9600, 1, int64_t{1} << 40});
  return p;
}

std::vector<int64_t> budgets_of(const Problem& p) {
  const int64_t least = smallest_budget(p), most = keep_all_arena(p);
  std::vector<int64_t> budgets;
  for (int k = 0; k <= 12; ++k) budgets.push_back(least + (most - least) * k / 12);
  return budgets;
}

TEST(Levels, MoreMemoryIsNeverSlowerWhateverWasAskedBefore) {
  for (const bool link : {false, true}) {
    const Problem p = blocks(14, link);
    const std::vector<int64_t> budgets = budgets_of(p);
    Solver up(p), down(p);
    std::map<int64_t, double> seconds;
    double before = 1e300;
    for (const int64_t budget : budgets) {
      const auto plan = up.solve(budget);
      ASSERT_TRUE(plan.has_value()) << budget;
      Problem asked = p;
      asked.budget_bytes = budget;
      EXPECT_EQ(violation(asked, *plan), "");
      EXPECT_LE(plan->predicted_seconds, before * (1 + 1e-12)) << budget;
      seconds[budget] = before = plan->predicted_seconds;
    }
    for (size_t k = budgets.size(); k-- > 0;)
      EXPECT_EQ(down.solve(budgets[k])->predicted_seconds, seconds[budgets[k]]) << budgets[k];
    EXPECT_EQ(Solver(p).solve(budgets[5])->predicted_seconds, seconds[budgets[5]]);
  }
}

TEST(Levels, LessThanTheSmallestIsRefusedAndThatIsNot) {
  for (const bool link : {false, true}) {
    const Problem p = blocks(14, link);
    const int64_t least = Solver(p).smallest().arena_bytes;
    EXPECT_TRUE(Solver(p).solve(least).has_value());
    EXPECT_FALSE(Solver(p).solve(least - 1).has_value());
  }
}

// Where a plan is near the bound only its own level and what is next to it is searched: to the end of all levels took twenty times
// the work, for plans that no answer could be.
TEST(Levels, OneAnswerTakesLittleOfTheWorkOfAll) {
  const Problem p = blocks(24, false);
  Search all(p, true);
  search_all_budgets(all);
  const int64_t most = keep_all_arena(p);
  for (const int percent : {90, 70, 55}) {
    const int64_t budget = most * percent / 100;
    Solver one(p);
    const auto plan = one.solve(budget);
    ASSERT_TRUE(plan.has_value());
    EXPECT_LE(one.work() * 4, all.evaluate.work()) << percent;
    const auto fit = all.fastest_within(budget, budget);
    ASSERT_TRUE(fit.has_value());
    EXPECT_LE(plan->predicted_seconds, fit->plan.predicted_seconds * 1.002) << percent;
  }
}

}  // namespace
}  // namespace cairn::plan
