// Random graphs of up to 12 forward ops: never slower than the best of all choices per saved value, at any
// budget that some choice fits.
#include <gtest/gtest.h>

#include <set>

#include "bench/plan/problems.h"
#include "tests/planner/brute.h"
#include "tests/planner/cases.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

constexpr size_t kMaxFree = 12;  // 2^12 plans

// Two generators: shapes of all kinds, and forward graphs with the backward part derived from them.
Problem small_problem(uint32_t seed) {
  if (seed % 2) return random_problem(seed, {.max_ops = 12, .links = false, .regions = false});
  return bench::random_problem(2 + static_cast<int>(seed / 2 % 11), seed);
}

void compare(uint32_t first, uint32_t count) {
  int64_t problems = 0, budgets = 0, equal = 0, better = 0, worse = 0;
  for (uint32_t seed = first; seed - first < count; ++seed) {
    say_progress(seed - first, count);
    Problem p = small_problem(seed);
    const Index index(p);
    const Intervals intervals(p, index);
    const Rules rules(p, index, intervals);
    const std::vector<int32_t> free = free_across(p, rules);
    if (free.size() > kMaxFree) continue;
    ++problems;
    std::vector<BrutePoint> points;
    std::vector<int64_t> arenas;
    for (const BrutePoint& point : brute_force(p, index, intervals, rules, free)) {
      if (point.arena_bytes == 0) continue;  // no bytes at all: nothing to decide
      points.push_back(point);
      arenas.push_back(point.arena_bytes);
    }
    const std::vector<std::optional<Plan>> plans = solve_all(p, arenas);
    for (size_t k = 0; k < points.size(); ++k) {
      p.budget_bytes = arenas[k];
      ++budgets;
      if (!plans[k]) {
        ++worse;
        ADD_FAILURE() << "seed " << seed << ", budget " << p.budget_bytes << ": no plan";
        continue;
      }
      ASSERT_EQ(violation(p, *plans[k]), "") << "seed " << seed << ", budget " << p.budget_bytes;
      const double seconds = plans[k]->predicted_seconds, tolerance = 1e-9 * points[k].seconds;
      ++(seconds > points[k].seconds + tolerance   ? worse
         : seconds < points[k].seconds - tolerance ? better
                                                   : equal);
      EXPECT_LE(seconds, points[k].seconds + tolerance) << "seed " << seed << ", budget " << p.budget_bytes;
    }
  }
  EXPECT_GT(better + equal, 0);
  testing::Test::RecordProperty("problems", std::to_string(problems));
  std::printf("%ld problems, %ld budgets: equal %ld, better %ld, worse %ld\n", static_cast<long>(problems),
              static_cast<long>(budgets), static_cast<long>(equal), static_cast<long>(better),
              static_cast<long>(worse));
}

TEST(BruteForce, NoSlowerAtAnyBudget) {
  const auto [first, count] = cases(70);
  compare(first, count);
}

// Plans of the same peak, of which the slowest alone fits its arena to its peak.
TEST(BruteForce, ArenasDoNotFollowFromPeaks) {
  compare(39357, 1);
  compare(26683, 1);
}

}  // namespace
}  // namespace cairn::plan
