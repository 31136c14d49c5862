// Problems of up to 6 forward ops: how far from the best of all plans without links, whatever their order.
#include "tests/runtime/plan/optimum.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/plan/problems.h"
#include "tests/planner/cases.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

constexpr int kMaxValues = 13;  // 2^13 sets

Problem tiny_problem(uint32_t seed) {
  if (seed % 2) return random_problem(seed, {.max_ops = 6, .links = false, .regions = false});
  return bench::random_problem(2 + static_cast<int>(seed / 2 % 5), seed);
}

int moving_values(const Problem& p) {
  int count = 0;
  for (const Value& v : p.values) count += !v.persistent;
  return count;
}

TEST(Optimum, IsMostlyReached) {
  const auto [first, count] = cases(120);
  std::vector<double> gaps;  // over the optimum
  int64_t none = 0, at_least = 0;
  std::pair<double, std::string> worst;
  for (uint32_t seed = first; seed - first < count; ++seed) {
    Problem p = tiny_problem(seed);
    if (moving_values(p) > kMaxValues) continue;
    const Index index(p);
    const int64_t least = smallest_budget(p), most = keep_all_arena(p), floor = min_bytes(p, index);
    if (most == 0) continue;
    at_least += least == floor || optimum_seconds(p, index, least - 1) > 1e300;
    ++none;
    for (int k = 0; k < 4; ++k) {
      p.budget_bytes = least + (most - least) * k / 4;
      const Plan plan = solve(p);
      const double optimum = optimum_seconds(p, index, p.budget_bytes);
      // What no plan can beat, this one does not; and its bound is one.
      ASSERT_GE(plan.predicted_seconds, optimum * (1 - 1e-9)) << "seed " << seed << ": " << p.budget_bytes;
      ASSERT_LE(plan.bound_seconds, optimum * (1 + 1e-9)) << "seed " << seed << ": " << p.budget_bytes;
      gaps.push_back(optimum > 0 ? plan.predicted_seconds / optimum - 1 : 0);
      if (gaps.back() > worst.first) worst = {gaps.back(), cat("seed ", seed, ", budget ", p.budget_bytes)};
      if (least == most) break;
    }
  }
  ASSERT_FALSE(gaps.empty());
  std::sort(gaps.begin(), gaps.end());
  const auto part = [&](double share) {
    return gaps[std::min(gaps.size() - 1, static_cast<size_t>(share * static_cast<double>(gaps.size())))];
  };
  const auto reached = std::count_if(gaps.begin(), gaps.end(), [](double gap) { return gap <= 1e-9; });
  const double share = static_cast<double>(reached) / static_cast<double>(gaps.size());
  double mean = 0;
  for (double gap : gaps) mean += gap / static_cast<double>(gaps.size());
  std::printf(
      "%zu budgets: the optimum in %.2f %%; gap mean %.4f %%, 95 %% %.3f %%, 99 %% %.2f %%, most %.2f %% "
      "(%s)\n"
      "the smallest budget is the least of all plans (layout aside) in %ld of %ld problems\n",
      gaps.size(), 100 * share, 100 * mean, 100 * part(.95), 100 * part(.99), 100 * gaps.back(),
      worst.second.c_str(), static_cast<long>(at_least), static_cast<long>(none));
  EXPECT_GE(share, .95);
  EXPECT_LE(mean, .005);
  EXPECT_GE(static_cast<double>(at_least), .92 * static_cast<double>(none));
}

}  // namespace
}  // namespace cairn::plan
