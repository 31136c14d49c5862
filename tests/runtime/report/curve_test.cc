#include <gtest/gtest.h>

#include <set>

#include "runtime/report/report.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

size_t count(const std::string& text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(ReportCurve, ShowsEveryPointTheBudgetAndWhatPeopleDo) {
  Problem p = chain(12, 64000, 2);
  const Sweep found = sweep(p, 5);
  p.budget_bytes = found.points[2].budget_bytes;
  const std::string svg = curve_picture(p, solve(p), found);
  EXPECT_EQ(count(svg, "<title>budget "), found.points.size());
  for (const char* part :
       {"this planner", "lower bound", "per layer +", "\xe2\x88\x9an groups +", "keep all", "this plan +"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_NE(svg.find("budget " + human_bytes(p.budget_bytes)), std::string::npos);
  for (const SweepPoint& point : found.points)
    EXPECT_NE(svg.find("predicted " + human_seconds(point.seconds)), std::string::npos);
}

TEST(ReportCurve, WhatIsFarAboveIsCutOffAndSaidSo) {
  const Problem p = chain(4, 6400, 2);
  Sweep found = sweep(p, 3);
  found.points.push_back(found.points.back());
  found.points.back().budget_bytes -= 64;
  found.points.back().seconds *= 1000;
  EXPECT_NE(curve_picture(p, solve(p), found).find("above the picture"), std::string::npos);
  found.points.pop_back();
  EXPECT_EQ(curve_picture(p, solve(p), found).find("above the picture"), std::string::npos);
}

TEST(ReportCurve, ASinglePointIsAPicture) {
  Maker m;
  m.value("x", 64, true).value("a", 64).op("f", 0, {"x"}, {"a"}).backward_begin();
  const std::string svg = curve_picture(m.p, solve(m.p), sweep(m.p, 5));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST(ReportCurve, TicksOfOneAxisSayDifferentThings) {
  for (const double seconds : {2e-6, 3.1e-4, .014, 2.5})
    for (const int64_t bytes : {64, 9472, 1 << 22}) {
      Maker m;
      m.value("x", bytes, true).value("a", 64).op("f", seconds, {"x"}, {"a"}).backward_begin();
      const std::string svg = curve_picture(m.p, solve(m.p), sweep(m.p, 5));
      for (const char* axis : {"<text class='t' text-anchor='end'", "<text class='t' text-anchor='middle'"}) {
        std::set<std::string> labels;
        for (size_t at = svg.find(axis); at != std::string::npos; at = svg.find(axis, at + 1)) {
          const size_t from = svg.find('>', at) + 1;
          const std::string label = svg.substr(from, svg.find('<', from) - from);
          EXPECT_TRUE(labels.insert(label).second)
              << label << " twice, " << seconds << " s, " << bytes << " B";
        }
        EXPECT_GE(labels.size(), 1u) << axis;
      }
    }
}

TEST(ReportCurve, LabelsDoNotCoverEachOther) {
  for (int n : {8, 12, 16}) {
    Problem p = chain(n, 64000, 2);
    const Sweep found = sweep(p, 5);
    std::vector<int64_t> budgets;
    for (const SweepPoint& point : found.points) budgets.push_back(point.budget_bytes);
    for (const std::optional<Plan>& plan : solve_all(p, budgets)) {
      ASSERT_TRUE(plan.has_value());
      p.budget_bytes = plan->budget_bytes;
      const std::string svg = curve_picture(p, *plan, found);
      struct Text {
        double left, right, y;
      };
      std::vector<Text> texts;
      for (size_t at = svg.find("<text class='s halo"); at != std::string::npos;
           at = svg.find("<text class='s halo", at + 1)) {
        const size_t x = svg.find("x='", at) + 3, y = svg.find("y='", at) + 3, from = svg.find('>', at) + 1;
        const double left = std::stod(svg.substr(x));
        texts.push_back({left, left + text_width(svg.substr(from, svg.find('<', from) - from), 11.5),
                         std::stod(svg.substr(y))});
      }
      EXPECT_GE(texts.size(), 3u);
      const size_t rule = svg.find("<line class='limit'");
      ASSERT_NE(rule, std::string::npos);
      const double budget = std::stod(svg.substr(svg.find("x1='", rule) + 4));
      for (const Text& text : texts)
        EXPECT_FALSE(text.left < budget && budget < text.right) << n << " " << p.budget_bytes;
      for (size_t a = 0; a < texts.size(); ++a)
        for (size_t b = 0; b < a; ++b)
          EXPECT_FALSE(texts[a].left < texts[b].right && texts[b].left < texts[a].right &&
                       std::abs(texts[a].y - texts[b].y) < 11)
              << n << " " << p.budget_bytes;
    }
  }
}

}  // namespace
}  // namespace cairn::plan
