#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "runtime/plan/search/search.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

// Every op reads what was just made and something much older; each third one has a workspace.
Problem forward_only() {
  Maker maker;
  maker.value("x0", 64, true);
  for (int i = 1; i <= 40; ++i) {
    const auto name = [](int k) { return "x" + std::to_string(k); };
    maker.value(name(i), 64 * (1 + i * 7 % 11));
    maker.op("f" + std::to_string(i), 1, {name(i - 1), name(i / 2)}, {name(i)});
    if (i % 3 == 0) maker.p.ops.back().workspace_bytes = 128;
  }
  maker.backward_begin();
  return maker.p;
}

TEST(AnnealPlaced, ComesDownWithASoundLayout) {
  Problem p = forward_only();
  Search search(p, false);
  search.restart();
  ASSERT_TRUE(search.places());
  const Candidate all = search.archive.plans().begin()->second;
  const Fit before{search.lay_out(all, std::numeric_limits<int64_t>::max()), all};
  const Placed start = search.placed(before);
  const Fit same = search.fit_of(start);
  EXPECT_EQ(same.plan.arena_bytes, before.plan.arena_bytes);
  const Placed lower = search.local_search.place_lower(start, least_bytes(p, search.index), 2'000'000);
  EXPECT_LT(lower.height, start.height);
  const Placed within =
      search.local_search.anneal_placed(lower, (lower.height + start.height) / 2, 2'000'000);
  EXPECT_LE(within.from.cost.seconds, lower.from.cost.seconds);
  for (const Placed& placed : {lower, within}) {
    Plan plan = search.fit_of(placed).plan;
    EXPECT_EQ(plan.arena_bytes, placed.height);
    p.budget_bytes = plan.budget_bytes = placed.height;
    plan.predicted_seconds = placed.from.cost.seconds;
    EXPECT_EQ(plan.device_peak_bytes, placed.from.cost.peak_bytes);
    EXPECT_LE(plan.device_peak_bytes, plan.arena_bytes);
  }
}

}  // namespace
}  // namespace cairn::plan
