#include "runtime/plan/bound/linear_program.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

TEST(LinearProgram, FindsTheLeast) {
  LinearProgram p;
  const int32_t x = p.add_variable(2), y = p.add_variable(3);
  p.add_row({{x, 1}, {y, 1}}, 4);
  p.add_row({{x, 1}, {y, 3}}, 6);
  const LinearProgram::Answer answer = p.solve();
  EXPECT_NEAR(answer.bound, 9, 1e-12);
  EXPECT_NEAR(answer.x[0], 3, 1e-12);
  EXPECT_NEAR(answer.x[1], 1, 1e-12);
}

TEST(LinearProgram, KeepsToLimits) {
  LinearProgram p;
  const int32_t x = p.add_variable(1, 1), y = p.add_variable(5);
  p.add_row({{x, 1}, {y, 1}}, 3);
  EXPECT_NEAR(p.solve().bound, 1 + 5 * 2, 1e-12);
}

TEST(LinearProgram, WithoutRowsIsNothing) {
  LinearProgram p;
  p.add_variable(1);
  EXPECT_EQ(p.solve().bound, 0);
}

TEST(LinearProgram, IsFiniteWhereNothingHolds) {
  LinearProgram p;
  const int32_t x = p.add_variable(1, 1);
  p.add_row({{x, 1}}, 2);
  EXPECT_TRUE(p.solve().bound < 1e300);
}

// No point that holds all rows costs less, and the one where the search ended costs that.
TEST(LinearProgram, IsBelowEveryPointAndReached) {
  for (const uint32_t seed : support::seeds(300)) {
    std::mt19937 random(seed);
    const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n + 1)); };
    const int variables = 1 + upto(4), rows = 1 + upto(5);
    LinearProgram p;
    std::vector<double> cost, limit;
    for (int v = 0; v < variables; ++v) {
      cost.push_back(upto(5));
      limit.push_back(upto(2) ? LinearProgram::kUnlimited : 1 + upto(6));
      p.add_variable(cost.back(), limit.back());
    }
    std::vector<std::vector<double>> factors;
    std::vector<double> right;
    for (int r = 0; r < rows; ++r) {
      std::vector<std::pair<int32_t, double>> row;
      factors.emplace_back();
      for (int v = 0; v < variables; ++v) {
        factors.back().push_back(upto(8) - 3);
        row.emplace_back(v, factors.back().back());
      }
      right.push_back(upto(12) - 6);
      p.add_row(std::move(row), right.back());
    }
    const LinearProgram::Answer answer = p.solve();
    const auto holds = [&](const std::vector<double>& x, double slack) {
      for (int r = 0; r < rows; ++r) {
        double sum = 0;
        for (int v = 0; v < variables; ++v)
          sum += factors[static_cast<size_t>(r)][static_cast<size_t>(v)] * x[static_cast<size_t>(v)];
        if (sum < right[static_cast<size_t>(r)] - slack) return false;
      }
      return true;
    };
    const auto price = [&](const std::vector<double>& x) {
      double sum = 0;
      for (int v = 0; v < variables; ++v) sum += cost[static_cast<size_t>(v)] * x[static_cast<size_t>(v)];
      return sum;
    };
    if (holds(answer.x, 1e-9)) {
      EXPECT_NEAR(price(answer.x), answer.bound, 1e-9) << "seed " << seed;
    }
    for (int tries = 0; tries < 300; ++tries) {
      std::vector<double> x;
      for (int v = 0; v < variables; ++v)
        x.push_back(std::min(limit[static_cast<size_t>(v)], 0.5 * upto(24)));
      if (holds(x, 0)) ASSERT_GE(price(x), answer.bound - 1e-9) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace cairn::plan
