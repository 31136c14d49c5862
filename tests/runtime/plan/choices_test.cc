#include "runtime/plan/choices.h"

#include <gtest/gtest.h>

#include <numeric>

#include "make_problem.h"

namespace cairn::plan {
namespace {

// chain(12) with persistent values of 6400 bytes that may leave.
Problem with_state(int count) {
  Problem p = chain(12);
  for (int k = 0; k < count; ++k) p.values.push_back({"state" + std::to_string(k), 6400, true});
  return p;
}

int64_t taken_bytes(const std::vector<bool>& taken, const std::vector<Choice>& choices) {
  int64_t sum = 0;
  for (size_t c = 0; c < taken.size(); ++c) sum += taken[c] ? choices[c].bytes : 0;
  return sum;
}

double cost(Problem p, const std::vector<Choice>& choices, uint32_t subset) {
  double seconds = 0;
  for (size_t c = 0; c < choices.size(); ++c)
    if (subset >> c & 1) {
      p.budget_bytes += choices[c].bytes;
      seconds += choices[c].seconds;
    }
  const auto plans = solve_all(p, {p.budget_bytes});
  return plans[0] ? plans[0]->predicted_seconds + seconds : 1e300;
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
  for (const double price : {.1, .4, .9, 1.3}) {
    Problem p = with_state(6);
    p.budget_bytes = keep_all_arena(p) - 6 * 6400;
    std::vector<Choice> choices;
    for (int k = 0; k < 6; ++k) choices.push_back({6400, price * (1 + .2 * k)});
    const std::vector<bool> taken = choose(p, choices);
    uint32_t subset = 0;
    for (size_t c = 0; c < taken.size(); ++c) subset |= static_cast<uint32_t>(taken[c]) << c;
    const double chosen = cost(p, choices, subset);
    for (uint32_t k = 0; k <= 6; ++k)
      EXPECT_LE(chosen, cost(p, choices, (1u << k) - 1) + 1e-9) << price << ' ' << k;
    EXPECT_GT(taken_bytes(taken, choices) + (price > 1 ? 1 : 0), 0) << price;
  }
}

}  // namespace
}  // namespace cairn::plan
