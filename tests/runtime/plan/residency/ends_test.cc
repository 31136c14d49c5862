#include "runtime/plan/residency/ends.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/plan/cache.h"
#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// Four ops of a second, two of them backward. `table` is read by the first one, `late` by the second, and the last but one and the
// last change a gradient each.
Problem lookups(int64_t table, int64_t late, int64_t early_gradient, int64_t gradient, double latency = 0) {
  Maker m;
  m.link("host", 1000, int64_t{1} << 40, latency, 1);
  m.value("x0", 0, true).value("table", table).value("late", late);
  m.value("early_gradient", early_gradient).value("gradient", gradient);
  for (int i = 1; i <= 4; ++i) m.value("x" + std::to_string(i), 0);
  for (const char* home : {"table", "late", "early_gradient", "gradient"})
    m.p.values[static_cast<size_t>(m.find(home))].home = 0;
  m.op("f1", 1, {"x0", "table"}, {"x1"}).op("f2", 1, {"x1", "late"}, {"x2"});
  m.backward_begin().op("b2", 1, {"x2"}, {"x3", "early_gradient"}, 0, false);
  m.op("b1", 1, {"x3"}, {"x4", "gradient"}, 0, false);
  check(m.p);
  return m.p;
}
double ends(const Problem& p, int64_t budget_bytes = 0) { return Ends(p).least_seconds(budget_bytes, {}); }

TEST(Ends, AreWhatTheFirstOpWaitsForAndWhatGoesBehindTheLast) {
  EXPECT_NEAR(ends(lookups(2000, 0, 0, 3000)), 2 + 4 + 3, 1e-6);
  EXPECT_NEAR(ends(lookups(2000, 0, 0, 3000, 0.25)), 2.25 + 4 + 3.25, 1e-6);
  EXPECT_NEAR(ends(lookups(2000, 500, 500, 3000)), 2 + 4 + 3, 1e-6) << "hidden behind the ops beside them";
  EXPECT_NEAR(ends(lookups(2000, 4000, 5000, 3000)), 6 + 2 + 8, 1e-6) << "f1 and b1 hide a second each";
  EXPECT_EQ(ends(lookups(0, 0, 0, 0)), 0);
}

TEST(Ends, DoNotWaitForWhatMayStay) {
  Problem p = lookups(2000, 4000, 5000, 3000);
  for (Value& value : p.values) value.persistent = value.persistent || value.home == 0;
  EXPECT_EQ(ends(p), 0);
}

// Nothing else has to be paid for there: the plan is as fast as the bound.
TEST(Ends, AreAllThatAPlanWithoutALimitTakesMore) {
  Problem p = lookups(2000, 4000, 5000, 3000);
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_NEAR(plan.predicted_seconds, 16, 1e-6);
  EXPECT_NEAR(plan.bound_seconds, 16, 1e-6);
}

// Copies behind the last op count once: program points before it are not to count them, too.
TEST(Ends, AreNeverAboveAPlan) {
  for (const uint32_t seed : support::seeds(200)) {
    std::mt19937 random(seed);
    const auto bytes = [&](int64_t most) {
      return static_cast<int64_t>(random() % static_cast<uint32_t>(most));
    };
    Problem p = chain(2 + static_cast<int>(random() % 4), 640);
    p.links.push_back({"host", 0.125 * static_cast<double>(random() % 2), 400, 700, 0.7, int64_t{1} << 40});
    for (size_t o = 0, ops = p.ops.size(); o < ops; ++o)
      for (int32_t k = static_cast<int32_t>(random() % 3); k > 0; --k) {
        const auto v = static_cast<int32_t>(p.values.size());
        p.values.push_back({"w" + std::to_string(v), bytes(2000), random() % 6 == 0, 0});
        p.ops[o].inputs.push_back(v);
        const size_t again = random() % p.ops.size();
        if (again > o) p.ops[again].inputs.push_back(v);
        if (random() % 2 == 0) continue;
        for (size_t before = 0; before <= std::max(o, again); ++before) p.ops[before].recomputable = false;
        p.ops[std::max(o, again)].outputs.push_back(v);
      }
    check(p);
    SolverCache cache;
    const int64_t least = cache.smallest(p).arena_bytes;
    for (const int64_t budget : {least, least + least / 8, least + least / 2}) {
      p.budget_bytes = budget;
      const std::optional<Plan> plan = cache.solve_within(p, budget);
      if (!plan) continue;
      EXPECT_EQ(violation(p, *plan), "") << "seed " << seed;
      EXPECT_LE(Ends(p).least_seconds(budget, {}), plan->predicted_seconds * (1 + 1e-9))
          << "seed " << seed << " budget " << budget;
    }
  }
}

}  // namespace
}  // namespace cairn::plan
