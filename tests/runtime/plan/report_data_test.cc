#include <gtest/gtest.h>

#include <numeric>

#include "make_problem.h"
#include "runtime/plan/report.h"

namespace cairn::plan {
namespace {

TEST(ReportData, TheFullestSampleIsThePlansPeak) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
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

}  // namespace
}  // namespace cairn::plan
