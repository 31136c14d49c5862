#include <gtest/gtest.h>

#include "runtime/report/report.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

TEST(ReportWords, ComparesWithinTheSameBytes) {
  Problem p = chain(12, 64000, 2);
  const Sweep found = sweep(p, 5);
  p.budget_bytes = found.points[1].budget_bytes;
  const std::string words = curve_words(p, solve(p), found);
  for (const Baseline& b : found.baselines) {
    if (b.name == "keep_all") continue;
    EXPECT_NE(words.find(human_bytes(b.arena_bytes) + " and <b>+" +
                         percent(b.seconds / found.keep_all_seconds - 1)),
              std::string::npos)
        << b.name;
    const auto same = std::find_if(found.points.begin(), found.points.end(), [&](const SweepPoint& point) {
      return point.budget_bytes == b.arena_bytes;
    });
    ASSERT_NE(same, found.points.end());
    EXPECT_NE(words.find("takes <b>+" + percent(same->seconds / found.keep_all_seconds - 1)),
              std::string::npos);
  }
  size_t rows = 0;
  for (size_t at = words.find("<tr"); at != std::string::npos; at = words.find("<tr", at + 1)) ++rows;
  EXPECT_EQ(rows, 1 + found.points.size());
  EXPECT_NE(words.find("<tr class='now'>"), std::string::npos) << "the present budget";
}

TEST(ReportWords, EqualBaselinesAreNamedOnce) {
  Sweep s;
  s.baselines = {{"keep_all", "", 10, 10, 1}, {"per_layer", "", 10, 10, 1}, {"sqrt_n", "", 5, 5, 2}};
  const std::vector<Baseline> list = distinct_baselines(s);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].name, "sqrt_n");
}

}  // namespace
}  // namespace cairn::plan
