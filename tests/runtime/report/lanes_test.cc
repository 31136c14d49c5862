#include <gtest/gtest.h>

#include "runtime/report/report.h"
#include "tests/runtime/plan/make_problem.h"

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

TEST(ReportLanes, NarrowBarsAreDrawnTogether) {
  const Problem p = chain(20000);
  const Plan plan = solve(p);
  const std::string svg = lanes_picture(p, plan, simulate(p, plan));
  EXPECT_LT(svg.size(), 400000u);
  EXPECT_NE(svg.find(" more"), std::string::npos);
}

TEST(ReportLanes, KindsThatAreDrawnTogetherShareTheHeight) {
  Problem p = chain(5000, 6400, 1, Policy::kPlannerDecides);
  for (int32_t i = 0; i < 5000; i += 2) p.regions[i].policy = Policy::kRecompute;
  for (Op& op : p.ops)  // what a region is recomputed for: nothing outside reads it in forward
    if (op.region >= 0) op.region = op.region / 2 * 2;
  const Plan plan = solve(p);
  ASSERT_GT(plan.predicted_seconds, plan.keep_all_seconds);
  const std::string svg = lanes_picture(p, plan, simulate(p, plan));
  // A cluster of backward (2 s each) and what is run again (1 s each): both named, stacked to the lane's
  // height.
  const size_t at = svg.find("<title>backward ");
  ASSERT_NE(at, std::string::npos);
  const std::string words = svg.substr(at, svg.find("</title>", at) - at);
  EXPECT_NE(words.find("run again "), std::string::npos) << words;
  const std::string group = svg.substr(svg.rfind("<g>", at), at - svg.rfind("<g>", at));
  double sum = 0;
  int parts = 0;
  for (size_t h = group.find(" height='"); h != std::string::npos;
       h = group.find(" height='", h + 1), ++parts)
    sum += std::stod(group.substr(h + 9));
  EXPECT_EQ(parts, 2);
  EXPECT_NEAR(sum, 20, .11);
}

}  // namespace
}  // namespace cairn::plan
