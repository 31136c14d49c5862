#include "runtime/plan/residency/exposed.h"

#include <gtest/gtest.h>

#include "runtime/plan/plan.h"
#include "runtime/plan/residency/residence.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

// Four ops of a second. The first reads `table`, each the weight of its own, and the last one changes the table's gradient.
Problem lookups(double rate) {
  Maker m;
  m.link("host", rate, int64_t{1} << 40, 0, 1);
  m.value("x0", 0, true).value("table", 2000, true).value("gradient", 3000, true);
  for (int i = 1; i <= 4; ++i) m.value("w" + std::to_string(i), 500, true).value("x" + std::to_string(i), 0);
  for (const char* home : {"table", "gradient", "w1", "w2", "w3", "w4"})
    m.p.values[static_cast<size_t>(m.find(home))].home = 0;
  m.op("f1", 1, {"x0", "table", "w1"}, {"x1"}).op("f2", 1, {"x1", "w2"}, {"x2"});
  m.backward_begin().op("b2", 1, {"x2", "w3"}, {"x3"}, 0, false);
  m.op("b1", 1, {"x3", "w4"}, {"x4", "gradient"}, 0, false);
  check(m.p);
  return m.p;
}
std::vector<double> exposed(const Problem& p, const std::vector<std::string>& names) {
  const std::vector<double> all = exposed_seconds(resolve_homes(p, std::vector<bool>(p.values.size(), true)));
  std::vector<double> found;
  for (const std::string& name : names)
    for (size_t v = 0; v < p.values.size(); ++v)
      if (p.values[v].name == name) found.push_back(all[v]);
  return found;
}

// What the first op reads and the last one changes is waited for, however fast the link; the other weights come beside ops.
TEST(Exposed, IsWhatComesFirstAndGoesLast) {
  const std::vector<double> seconds = exposed(lookups(1000), {"table", "w1", "w2", "w3", "w4", "gradient"});
  EXPECT_EQ(seconds, (std::vector<double>{2, 0.5, 0, 0, 0, 3}));
}

// Behind the first op's, copies of half a second too much each are late for all that follows, too.
TEST(Exposed, IsWhatASlowLinkIsBehindWith) {
  const std::vector<double> seconds = exposed(lookups(250), {"table", "w1", "w2", "w3", "w4", "gradient"});
  EXPECT_EQ(seconds, (std::vector<double>{8, 2, 1, 1, 1, 12}));
}

TEST(Exposed, StaysWhereThereIsRoomForIt) {
  Problem p = lookups(1000);
  p.budget_bytes = 6500;  // the table and its gradient, and two of the four other weights at a time
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  for (const char* name : {"table", "gradient"})
    for (size_t v = 0; v < p.values.size(); ++v)
      if (p.values[v].name == name) EXPECT_LT(plan.home_offsets[v], 0) << name;
  EXPECT_LT(plan.predicted_seconds, 5);
}

}  // namespace
}  // namespace cairn::plan
