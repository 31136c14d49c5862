#include "runtime/plan/choices.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

// chain(12) with persistent values of 6400 bytes that may leave.
Problem with_state(int count) {
  Problem p = chain(12);
  for (int k = 0; k < count; ++k) p.values.push_back({"state" + std::to_string(k), 6400, true});
  return p;
}

// The seconds of the fastest plan with `each` bytes more, again and again, up to `count` times.
std::vector<double> seconds_with(const Problem& p, int64_t each, int count) {
  std::vector<int64_t> budgets;
  for (int k = 0; k <= count; ++k) budgets.push_back(p.budget_bytes + k * each);
  std::vector<double> seconds;
  for (const auto& plan : solve_all(p, budgets)) seconds.push_back(plan ? plan->predicted_seconds : 1e300);
  return seconds;
}

TEST(Choices, NothingLeavesWhereEverythingFits) {
  Problem p = with_state(3);
  p.budget_bytes = keep_all_arena(p);
  EXPECT_EQ(choose(p, std::vector<Choice>(3, {6400, 0})), std::vector<bool>(3, false));
  p.budget_bytes = 0;
  EXPECT_EQ(choose(p, std::vector<Choice>(3, {6400, 0})), std::vector<bool>(3, false));
  EXPECT_TRUE(choose(p, {}).empty());
}

TEST(Choices, WhatIsCheaperThanMakingAgainLeavesAndNoMore) {
  Problem p = with_state(4);
  p.budget_bytes = keep_all_arena(p) - 2 * 6400;
  // Making one value of the chain again takes 1 s.
  const std::vector<Choice> cheap = {{6400, .5}, {6400, .1}, {6400, .2}, {6400, .6}};
  EXPECT_EQ(choose(p, cheap), (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(choose(p, std::vector<Choice>(4, {6400, 1.5})), std::vector<bool>(4, false));
}

// Against the fastest plans with what any number of values frees.
TEST(Choices, NoPlanIsFasterThanWhatMayBe) {
  Problem p = with_state(4);
  p.budget_bytes = keep_all_arena(p) - 2 * 6400;
  const std::vector<double> plans = seconds_with(p, 6400, 4);
  for (const double each : {.2, .7, 3.0})
    for (const double hidden : {0.0, .5}) {
      double best = plans[0];
      for (size_t k = 0; k < plans.size(); ++k)
        best = std::min(best, plans[k] + std::max(0.0, static_cast<double>(k) * each - hidden));
      const Leaving leaving{4 * 6400, each / 6400, hidden};
      EXPECT_TRUE(may_take_less(p, leaving, best * 1.001)) << each;
      EXPECT_FALSE(may_take_less(p, leaving, p.op_seconds())) << each;
    }
  // Making two values again takes 2 s, so does letting them leave.
  EXPECT_FALSE(may_take_less(p, {4 * 6400, 1.0 / 6400, 0}, p.op_seconds() + 1.5));
  EXPECT_TRUE(may_take_less(p, {4 * 6400, .5 / 6400, 0}, p.op_seconds() + 1.5));
  p.budget_bytes = 0;
  EXPECT_TRUE(may_take_less(p, {4 * 6400, 1, 0}, p.op_seconds() / 2));
}

TEST(Choices, AllLeaveWhereNothingFits) {
  Problem p = with_state(4);
  p.budget_bytes = 6400;
  EXPECT_EQ(choose(p, std::vector<Choice>(4, {6400, .5})), std::vector<bool>(4, true));
}

TEST(Choices, ASingleOne) {
  Problem p = with_state(1);
  p.budget_bytes = keep_all_arena(p) - 1;
  EXPECT_EQ(choose(p, {{6400, .5}}), std::vector<bool>{true});
  EXPECT_EQ(choose(p, {{6400, 1.5}}), std::vector<bool>{false});
}

// No number of the cheapest per byte does better than the one chosen.
TEST(Choices, AreTheBestNumberOfTheCheapest) {
  Problem p = with_state(6);
  p.budget_bytes = keep_all_arena(p) - 6 * 6400;
  const std::vector<double> seconds = seconds_with(p, 6400, 6);
  for (const double price : {.1, .4, .9, 1.3}) {
    std::vector<Choice> choices;
    for (int k = 0; k < 6; ++k) choices.push_back({6400, price * (1 + .2 * k)});
    const std::vector<bool> taken = choose(p, choices);
    double chosen = 0, cheapest = 0;  // all are of the same size: only their number and their price matter
    size_t count = 0;
    for (size_t c = 0; c < taken.size(); ++c)
      if (taken[c]) ++count, chosen += choices[c].seconds;
    chosen += seconds[count];
    for (size_t k = 0; k < seconds.size(); ++k) {
      EXPECT_LE(chosen, cheapest + seconds[k] + 1e-9) << price << ' ' << k;
      if (k < choices.size()) cheapest += choices[k].seconds;
    }
    if (price <= 1) EXPECT_GT(count, 0u) << price;
  }
}

}  // namespace
}  // namespace cairn::plan
