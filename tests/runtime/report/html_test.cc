#include <gtest/gtest.h>

#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

ReportOptions no_curve() {
  ReportOptions options;
  options.curve_budgets = 0;
  return options;
}

TEST(ReportHtml, IsSelfContainedAndTellsTheStory) {
  Problem p = chain(8, 6400, 2);
  p.values[1].name = "<script>";
  p.budget_bytes = smallest_budget(p);
  ReportOptions options;
  options.title = "gpt2 & co";
  options.facts = {"device: cpu <big>", "no colon"};
  options.curve_budgets = 4;
  const std::string html = to_html(p, solve(p), options);
  for (const char* part :
       {"<!doctype html>", "gpt2 &amp; co", "Seconds of forward and backward over the budget",
        "The curve as a table", "Device memory over one forward and backward", "What forms the peak",
        "<h2>Values</h2>", "recomputed by", "<dt>device</dt><dd>cpu &lt;big&gt;</dd>",
        "<dt>no colon</dt><dd></dd>", "&lt;script&gt;", "default-src 'none'", "</html>"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  for (const char* part : {"src=", "href=", "@import", "url(http"})
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  EXPECT_EQ(to_html(p, solve(p), no_curve()).find("over the budget</text>"), std::string::npos);
}

TEST(ReportHtml, ThousandsOfValuesAreASmallPage) {
  const Problem p = chain(10'000);
  const std::string html = to_html(p, solve(p), no_curve());
  EXPECT_NE(html.find("\"a9999\""), std::string::npos);
  EXPECT_LT(html.size(), 2'500'000u);
}

// Between tags no name, of a value, op, region, tier or category, may leave text or attribute.
TEST(ReportHtml, AnyNameIsText) {
  const std::string bad = "'\"><img onerror=x>&amp; </script></title></svg><!-- \xf0\x9f\x98\x80 \xff\xc3";
  Problem p = chain(6, 6400, 2);
  p.links.push_back({bad + "tier", 0, 6400, 6400, 1, 1 << 20});
  for (Value& v : p.values) v.name += bad;
  for (Op& op : p.ops) op.name += bad;
  for (Region& region : p.regions) region.name += bad;
  p.regions[0].policy = Policy::kRecompute;
  p.regions[1].policy = Policy::kOffload;
  ReportOptions options;
  options.title = bad;
  options.curve_budgets = 3;
  for (size_t v = 0; v < p.values.size(); ++v) options.categories.push_back(bad + (v % 2 ? "odd" : "even"));
  const Plan plan = solve(p);
  for (const std::string& page : {to_html(p, plan, options), to_svg(p, plan, options)}) {
    EXPECT_EQ(page.find("<img"), std::string::npos);
    EXPECT_EQ(page.find("<!--"), std::string::npos);
    EXPECT_EQ(page.find("'\"&gt;"), std::string::npos) << "quotes in an attribute";
    EXPECT_EQ(page.find('\xff'), std::string::npos) << "not UTF-8";
    EXPECT_NE(page.find("&#39;&quot;&gt;&lt;img"), std::string::npos);
    EXPECT_NE(page.find("\xf0\x9f\x98\x80"), std::string::npos);
  }
}

TEST(ReportHtml, NamesOfFourThousandBytes) {
  Problem p = chain(40, 6400, 4);
  for (Value& v : p.values) v.name.append(4096, '<');
  for (Op& op : p.ops) op.name.append(4096, '\'');
  for (Region& region : p.regions) region.name.append(4096, '&');
  p.budget_bytes = 128 + 20 * 6400;
  EXPECT_LT(to_html(p, solve(p), no_curve()).size(), 800'000u);
}

TEST(ReportHtml, EachTimeTheSame) {
  Problem p = random_problem(3);
  p.budget_bytes = keep_all_arena(p);
  Plan plan = solve(p);
  plan.solve_seconds = 0;
  ReportOptions options;
  options.curve_budgets = 3;
  EXPECT_EQ(to_html(p, plan, options), to_html(p, plan, options));
}

TEST(ReportHtml, EmptyProblem) {
  const Problem p;
  EXPECT_NE(to_html(p, solve(p), {}).find("</html>"), std::string::npos);
}

}  // namespace
}  // namespace cairn::plan
