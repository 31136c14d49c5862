#include <gtest/gtest.h>

#include <numeric>

#include "runtime/report/report.h"
#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

TEST(ReportData, TheFullestSampleIsThePlansPeak) {
  for (const uint32_t seed : support::seeds(16)) {
    Problem p = random_problem(seed);
    p.budget_bytes = smallest_budget(p);
    const Plan plan = solve(p);
    const Index index(p);
    const Categories c = categorize(p, index, plan, {});
    int64_t most = 0;
    for (const Sample& s : sample_memory(p, index, plan, simulate(p, plan), c, 50)) {
      most = std::max(most, s.total);
      EXPECT_EQ(std::accumulate(s.bytes.begin(), s.bytes.end(), int64_t{0}), s.total);
    }
    EXPECT_EQ(most, plan.device_peak_bytes);
    const PeakView peak = view_peak(p, index, plan);
    EXPECT_EQ(peak.bytes, plan.device_peak_bytes);
    int64_t sum = index.persistent_bytes + peak.workspace;
    for (int32_t v : peak.values) sum += p.values[v].bytes;
    EXPECT_EQ(sum, peak.bytes);
  }
}

TEST(ReportData, TheCallersCategoriesAreUsed) {
  const Problem p = chain(2);
  ReportOptions options;
  options.categories.assign(p.values.size(), "activations");
  options.categories[0] = "parameters";
  const Categories c = categorize(p, Index(p), solve(p), options);
  EXPECT_EQ(c.names, (std::vector<std::string>{"parameters", "activations", "workspace"}));
}

TEST(ReportData, WhatThePlannerMovesHasItsOwnCategory) {
  Problem p = chain(8, 6400, 2);
  p.budget_bytes = smallest_budget(p);
  ReportOptions options;
  options.categories.assign(p.values.size(), "activation");
  const Plan plan = solve(p);
  const Categories c = categorize(p, Index(p), plan, options);
  for (size_t v = 0; v < p.values.size(); ++v)
    EXPECT_EQ(c.names[c.of_value[v]],
              plan.values[v].decision == Decision::kRecompute ? "recomputed" : "activation");
  EXPECT_NE(std::find(c.names.begin(), c.names.end(), "recomputed"), c.names.end());
  const Categories plain = categorize(p, Index(p), plan, {});
  for (size_t a = 0; a < c.names.size(); ++a)
    for (size_t b = 0; b < plain.names.size(); ++b)
      if (c.names[a] == plain.names[b]) EXPECT_EQ(c.colors[a], plain.colors[b]) << c.names[a];
}

TEST(ReportData, OwnersAreTheLargestOnTheDevice) {
  Problem p = random_problem(11);
  p.budget_bytes = smallest_budget(p);
  const Plan plan = solve(p);
  const Index index(p);
  const PeakView peak = view_peak(p, index, plan);
  const auto found = owners(p, index, plan, {0, peak.step, peak.step}, 3);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1], found[2]);
  ASSERT_EQ(found[1].size(), std::min<size_t>(3, peak.values.size()));
  for (size_t k = 0; k < found[1].size(); ++k)
    EXPECT_EQ(p.values[found[1][k]].bytes, p.values[peak.values[k]].bytes);
}

}  // namespace
}  // namespace cairn::plan
