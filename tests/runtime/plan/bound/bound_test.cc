#include "runtime/plan/bound/bound.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "tests/runtime/plan/make_problem.h"
#include "tests/runtime/plan/optimum.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

TEST(Bound, IsTheSumOfSecondsWithoutPressure) {
  const Problem p = chain(5);
  for (const int64_t budget : {int64_t{0}, int64_t{1} << 30}) {
    const Bound bound = lower_bound(p, Index(p), budget);
    EXPECT_DOUBLE_EQ(bound.seconds, 16);
    EXPECT_EQ(bound.point, -1);
    EXPECT_EQ(bound.byte_price, 0);
    EXPECT_EQ(bound.remake_price, 0);
    EXPECT_DOUBLE_EQ(lower_bound_seconds(p, Index(p), budget), 16);
  }
}

// At the loss a1..a4 are read later besides a5 and g5: 6 blocks. Room for 4 leaves 2 to make again, 1 s each.
TEST(Bound, CountsWhatMustBeMadeAgain) {
  const Problem p = chain(5);
  const Bound bound = lower_bound(p, Index(p), 128 + 4 * 6400);
  EXPECT_NEAR(bound.seconds, 18, 1e-6);
  EXPECT_NEAR(bound.remake_price, 1.0 / 6400, 1e-9);
  EXPECT_GE(bound.point, p.backward_begin);
  EXPECT_NEAR(lower_bound_seconds(p, Index(p), 128 + 4 * 6400 + 3200), 18, 1e-6);  // no half ops
  EXPECT_NEAR(lower_bound_seconds(p, Index(p), 128 + 5 * 6400 - 1), 18, 1e-6);
}

TEST(Bound, IsNotRaisedBeyondWhatIsEnough) {
  int less = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Problem p = random_problem(seed);
    const Index index(p);
    const int64_t budget = least_bytes(p, index) + 6400;
    const double all = lower_bound_seconds(p, index, budget);
    EXPECT_EQ(lower_bound_seconds(p, index, budget, {}, all * 1.01), all) << seed;
    const double enough = (index.total_seconds + all) / 2;
    const double some = lower_bound_seconds(p, index, budget, {}, enough);
    EXPECT_GE(some, enough * (1 - 1e-12)) << seed;
    EXPECT_LE(some, all * (1 + 1e-12)) << seed;
    less += some < all;
  }
  EXPECT_GT(less, 0);
}

// The same with a link that could take one block in forward's 5 s without a stall.
TEST(Bound, CountsWhatALinkCanTake) {
  Problem p = chain(5);
  p.links.push_back({"host", 0, 6400 / 5.0, 1e9, 1, 1 << 20});
  EXPECT_NEAR(lower_bound_seconds(p, Index(p), 128 + 4 * 6400), 17, 1e-6);
  p.links[0].capacity_bytes = 0;
  EXPECT_NEAR(lower_bound_seconds(p, Index(p), 128 + 4 * 6400), 18, 1e-6);
}

// u1..u3 are cheap to make from t, which is dear and which no later op reads: it stays or is made again.
TEST(Bound, CountsTheInputsOfOpsMadeAgain) {
  Maker m;
  m.value("in", 0, true).value("t", 100).value("w", 0).value("g", 0).value("end", 0, true);
  for (const char* u : {"u1", "u2", "u3"}) m.value(u, 100);
  m.op("deep", 10, {"in"}, {"t"});
  for (const char* u : {"1", "2", "3"}) m.op(std::string("f") + u, 1, {"t"}, {std::string("u") + u});
  m.op("last", 1, {"in"}, {"w"}).backward_begin().op("loss", 1, {"w"}, {"g"}, 200);
  for (const char* u : {"1", "2", "3"}) m.op(std::string("b") + u, 1, {std::string("u") + u, "g"}, {"end"});
  for (auto& op : m.p.ops)
    if (op.name == "b1" || op.name == "b2") op.outputs.clear();
  const Index index(m.p);
  // 400 bytes leave 200 at the loss: u1 and u2 or, since u3 alone would need t made again, too, t and u1.
  EXPECT_NEAR(lower_bound_seconds(m.p, index, 400) - index.total_seconds, 2, 1e-6);
  EXPECT_NEAR(optimum_seconds(m.p, index, 400) - index.total_seconds, 2, 1e-6);
}

TEST(Bound, IsFiniteWhereNothingFits) {
  const Problem p = chain(5);
  for (const int64_t budget : {1, 128, 128 + 6400, 128 + 2 * 6400}) {
    const Bound bound = lower_bound(p, Index(p), budget);
    EXPECT_TRUE(std::isfinite(bound.seconds));
    EXPECT_GE(bound.seconds, 16);
  }
}

// No plan at all is faster, however it runs ops again; and little is lost to the best one.
TEST(Bound, IsBelowTheOptimumAndNearIt) {
  double bounds = 0, optima = 0;
  for (const uint32_t seed : support::seeds(400)) {
    const Problem p = random_problem(seed, {5, false, false});
    const Index index(p);
    const int64_t least = min_bytes(p, index), most = max_bytes(p, index);
    for (int64_t k = 0; k < 6; ++k) {
      const int64_t budget = std::max<int64_t>(1, least + (most - least) * k / 5);
      const double optimum = optimum_seconds(p, index, budget);
      if (!std::isfinite(optimum) || index.total_seconds == 0) continue;
      const double bound = lower_bound_seconds(p, index, budget);
      ASSERT_LE(bound, optimum * (1 + 1e-12)) << "seed " << seed << ", budget " << budget;
      bounds += bound / index.total_seconds - 1;
      optima += optimum / index.total_seconds - 1;
    }
  }
  EXPECT_GT(optima, 1);
  EXPECT_GT(bounds, 0.8 * optima);
}

// With links: what the planner finds, at budgets from the smallest on.
TEST(Bound, NoPlanOfTheSolverIsFaster) {
  EXPECT_TRUE(rc::check([](uint32_t seed) {
    Problem p = random_problem(seed, {6, true, false});
    const Index index(p);
    const int64_t least = smallest_budget(p), most = std::max(least, keep_all_arena(p));
    std::vector<int64_t> budgets;
    for (int64_t k = 0; k < 4; ++k) budgets.push_back(std::max<int64_t>(1, least + (most - least) * k / 3));
    for (const std::optional<Plan>& plan : solve_all(p, budgets)) {
      RC_ASSERT(plan.has_value());
      RC_ASSERT(lower_bound_seconds(p, index, plan->budget_bytes) <=
                simulate(p, *plan).seconds * (1 + 1e-12));
    }
  }));
}

}  // namespace
}  // namespace cairn::plan
