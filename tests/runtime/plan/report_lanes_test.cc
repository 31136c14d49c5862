#include <gtest/gtest.h>

#include "make_problem.h"
#include "runtime/plan/report.h"

namespace cairn::plan {
namespace {

TEST(ReportLanes, EachLaneThatWorksHasARow) {
  Problem p = chain(6, 6400, 2);
  p.regions[0].policy = Policy::kRecompute;
  p.regions[1].policy = Policy::kOffload;
  p.links.push_back({"host", 0, 6400, 6400, 1, 1 << 20});
  p.links.push_back({"disk", 0, 6400, 6400, 1, 1 << 20});
  const Plan plan = solve(p);
  const std::string svg = lanes_picture(p, plan, simulate(p, plan));
  for (const char* part : {"compute", "to host", "from host", "run again", "copy out: copy out a3"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_EQ(svg.find("disk"), std::string::npos);
}

TEST(ReportLanes, NarrowBarsAreMerged) {
  const Problem p = chain(20000);
  const Plan plan = solve(p);
  const std::string svg = lanes_picture(p, plan, simulate(p, plan));
  EXPECT_LT(svg.size(), 400000u);
  EXPECT_NE(svg.find(" more"), std::string::npos);
}

}  // namespace
}  // namespace cairn::plan
