#include <gtest/gtest.h>

#include "bench/plan/irregular.h"
#include "runtime/plan/index.h"
#include "runtime/plan/search/solver.h"

namespace cairn::plan {
namespace {

#ifndef CAIRN_SANITIZED  // a fixed amount of search: tens of seconds
class FromSegments : public testing::Test {
 protected:
  const Problem p_ = bench::irregular_problem("encoder_decoder", 8, 1);
  const int64_t fixed_ = p_.persistent_bytes();
  Solver solver_{p_};
  const Plan smallest_ = solver_.smallest();
};

// In the largest op's backward there is room for its own values and little else: what its layer begins with, and one value between
// layers, from which all others are made again.
TEST_F(FromSegments, TheSmallestBudgetIsLittleAboveTheLargestOp) {
  ASSERT_GT(p_.ops.size(), kSmallProblem);
  const auto largest = static_cast<double>(least_bytes(p_, Index(p_)) - fixed_);
  EXPECT_LE(static_cast<double>(smallest_.arena_bytes - fixed_), 1.28 * largest);
}

TEST_F(FromSegments, LittleAboveItNothingIsMadeAgainForEachOp) {
  const int64_t budget = fixed_ + (smallest_.arena_bytes - fixed_) / 50 * 51;
  const auto plan = solver_.solve(budget);
  ASSERT_TRUE(plan.has_value());
  Problem limited = p_;
  limited.budget_bytes = budget;
  EXPECT_EQ(violation(limited, *plan), "");
  EXPECT_LE(plan->arena_bytes, budget);
  EXPECT_LE(plan->predicted_seconds, 4 * plan->keep_all_seconds);
  // The same whatever was asked before.
  Solver fresh(p_);
  const auto again = fresh.solve(budget);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->predicted_seconds, plan->predicted_seconds);
  EXPECT_EQ(again->arena_bytes, plan->arena_bytes);
}

// Arenas of dense blocks are above their peaks, so budgets fail here and there: steps get smaller between what failed and what fits.
TEST(Smallest, LiesBetweenWhatFitsAndWhatFailed) {
  const Problem p = bench::irregular_problem("dense", 9, 12);
  EXPECT_LE(Solver(p).smallest().arena_bytes, 284'140'000);
}

// A link that could carry all values while everything is kept: copies hide all that does not fit, whatever the budget.
TEST(SendAroundFull, WithALinkThatKeepsUpNoBudgetIsSlow) {
  Problem p = bench::irregular_problem("dense", 6, 42);
  double bytes = 0, seconds = 0;
  for (const Value& value : p.values) bytes += value.persistent ? 0 : static_cast<double>(value.bytes);
  for (const Op& op : p.ops) seconds += op.seconds;
  p.links.push_back({"host", 1e-7, bytes / seconds, bytes / seconds, .8, int64_t{1} << 60});
  Solver solver(p);
  const int64_t fixed = p.persistent_bytes(), least = solver.smallest().arena_bytes - fixed;
  for (const int64_t percent : {110, 115}) {
    const auto plan = solver.solve(fixed + least / 100 * percent);
    ASSERT_TRUE(plan.has_value()) << percent;
    EXPECT_LE(plan->predicted_seconds, 1.12 * plan->keep_all_seconds) << percent;
  }
}

// Between what sending everything takes, which is 26 times and more as slow as keeping everything, and what making again takes.
TEST(SendAroundFull, CopiesTakeThePlaceOfMakingAgainWhereMemoryIsFull) {
  for (const auto& [kind, size, seed, percent, times] :
       {std::tuple("dense", 6, 71, 110, 6.), {"dense", 2, 5, 102, 3.}}) {
    Problem p = bench::irregular_problem(kind, size, static_cast<uint32_t>(seed));
    p.links.push_back({"host", 1e-5, 2e10, 2e10, .7, int64_t{1} << 40});
    Solver solver(p);
    const int64_t fixed = p.persistent_bytes();
    p.budget_bytes = fixed + (solver.smallest().arena_bytes - fixed) / 100 * percent;
    const auto plan = solver.solve(p.budget_bytes);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(violation(p, *plan), "");
    EXPECT_LE(plan->predicted_seconds, times * plan->keep_all_seconds) << kind << ' ' << size;
  }
}

// Little above what it takes to send everything, one copy at a time, which is 27 times as slow as keeping everything.
TEST(LongestIdle, WhatStaysIsSentInTheOrderOfItsTime) {
  Problem p = bench::irregular_problem("inception", 12, 43);
  p.links.push_back({"host", 1e-5, 2e10, 2e10, .7, int64_t{1} << 40});
  Solver solver(p);
  const int64_t fixed = p.persistent_bytes();
  p.budget_bytes = fixed + (solver.smallest().arena_bytes - fixed) / 10 * 11;
  const auto plan = solver.solve(p.budget_bytes);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(violation(p, *plan), "");
  EXPECT_LE(plan->predicted_seconds, 10 * plan->keep_all_seconds);
}
#endif

}  // namespace
}  // namespace cairn::plan
