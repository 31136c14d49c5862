#include <gtest/gtest.h>

#include "make_problem.h"

namespace cairn::plan {
namespace {

TEST(ReportHtml, IsSelfContainedAndTellsTheStory) {
  Problem p = chain(8, 6400, 2);
  p.values[1].name = "<script>";
  p.budget_bytes = smallest_budget(p);
  const std::string html = to_html(p, solve(p), {"gpt2 & co", {}});
  for (const char* part : {"<!doctype html>", "gpt2 &amp; co", "What forms the peak",
                           "Values, the largest first", "made again by", "&lt;script&gt;", "</html>"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  for (const char* part : {"<script", "src=", "href=", "@import"})
    EXPECT_EQ(html.find(part), std::string::npos) << part;
}

TEST(ReportHtml, TheTableIsCapped) {
  const Problem p = chain(3000);
  const std::string html = to_html(p, solve(p), {});
  EXPECT_NE(html.find("smaller values are not shown"), std::string::npos);
  EXPECT_LT(html.size(), 2000000u);
}

TEST(ReportHtml, EmptyProblem) {
  const Problem p;
  EXPECT_NE(to_html(p, solve(p), {}).find("</html>"), std::string::npos);
}

}  // namespace
}  // namespace cairn::plan
