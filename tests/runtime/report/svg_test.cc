#include <gtest/gtest.h>

#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

TEST(ReportSvg, ShowsThePeakAndTheBudget) {
  Problem p = chain(8, 6400, 2);
  p.values[1].name = "<a & b>";
  p.budget_bytes = 128 + 7 * 6400;
  const Plan plan = solve(p);
  const std::string svg = to_svg(p, plan, {"a test", {}, {}});
  EXPECT_EQ(svg.rfind("<svg xmlns=", 0), 0u);
  for (const char* part :
       {"a test", "budget 43.9 KiB", "peak ", "backward begins", "largest besides persistent", "</svg>"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_EQ(svg.find("<a & b>"), std::string::npos);
}

TEST(ReportSvg, ABigPlanIsASmallPicture) {
  const Problem p = chain(3000);
  EXPECT_LT(to_svg(p, solve(p), {}).size(), 200000u);
}

TEST(ReportSvg, EmptyProblem) {
  const Problem p;
  EXPECT_NE(to_svg(p, solve(p), {}).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace cairn::plan
