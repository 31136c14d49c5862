#include <gtest/gtest.h>

#include <limits>
#include <map>
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

// Without links: what is there at the same time lies apart, below the arena's height.
void expect_apart(const Problem& p, const Plan& plan) {
  std::map<int32_t, int64_t> there;  // value, offset
  const auto expect_free = [&](int64_t offset, int64_t bytes) {
    EXPECT_GE(offset, 0);
    EXPECT_LE(offset + bytes, plan.arena_bytes);
    for (const auto& [v, at] : there) EXPECT_TRUE(offset + bytes <= at || at + p.values[v].bytes <= offset);
  };
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kFree) there.erase(step.index);
    if (step.kind != StepKind::kRun) continue;
    const Op& op = p.ops[step.index];
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      const int64_t bytes = p.values[op.outputs[k]].bytes;
      if (bytes == 0 || there.contains(op.outputs[k])) continue;
      expect_free(step.offsets[k], bytes);
      there[op.outputs[k]] = step.offsets[k];
    }
    if (op.workspace_bytes > 0) expect_free(step.offset, op.workspace_bytes);
  }
}

// From an arena that is far above the budget, each stretch of time comes down by itself.
TEST(AnnealPacked, ComesWithinTheBudgetWithASoundLayout) {
  const Problem p = forward_only();
  Search search(p, false);
  search.restart();
  const Candidate all = search.archive.plans().begin()->second;
  const Placed start = search.placed({search.lay_out(all, std::numeric_limits<int64_t>::max()), all});
  const int64_t budget = start.height - (start.height - least_bytes(p, search.index)) / 4;
  const Placed packed = search.local_search.anneal_packed(start, budget, 2'000'000);
  EXPECT_LE(packed.height, budget);
  EXPECT_GT(packed.from.cost.seconds, all.cost.seconds);
  const Plan plan = search.fit_of(packed).plan;
  EXPECT_EQ(plan.arena_bytes, packed.height);
  EXPECT_EQ(plan.device_peak_bytes, packed.from.cost.peak_bytes);
  expect_apart(p, plan);
  // Within a budget that holds it, what is faster is looked for.
  const Placed again = search.local_search.anneal_packed(packed, budget, 200'000);
  EXPECT_LE(again.from.cost.seconds, packed.from.cost.seconds);
  EXPECT_LE(again.height, budget);
}

// Each plan on the way down is sound and lower than the one before by a part at least, but for the last one.
TEST(AnnealPacked, FallsWithASoundLayoutAtEachHeight) {
  const Problem p = forward_only();
  Search search(p, false);
  constexpr int64_t kParts = 16;
  std::vector<int64_t> heights;
  for (int time = 0; time < 2; ++time) {
    search.restart();
    const Candidate all = search.archive.plans().begin()->second;
    const Placed start = search.placed({search.lay_out(all, std::numeric_limits<int64_t>::max()), all});
    const int64_t least = least_bytes(p, search.index);
    const auto met = search.local_search.pack_lower(start, least, 2'000'000, kParts);
    ASSERT_GT(met.size(), 1u);
    EXPECT_LE(met[0].height, start.height - start.height / kParts);
    for (size_t k = 0; k < met.size(); ++k) {
      EXPECT_GE(met[k].height, least);
      if (k > 0) EXPECT_LT(met[k].height, met[k - 1].height);
      const Plan plan = search.fit_of(met[k]).plan;
      EXPECT_EQ(plan.arena_bytes, met[k].height);
      expect_apart(p, plan);
      if (time == 0) heights.push_back(met[k].height);
    }
    EXPECT_EQ(met.back().height, heights.back());
    const auto none = search.local_search.pack_lower(start, start.height, 2'000'000, kParts);
    ASSERT_EQ(none.size(), 1u);
    EXPECT_EQ(none[0].height, start.height);
  }
}

// The exact search gives offsets where there is room, and else says which ops it is about.
TEST(PlaceExactly, GivesOffsetsOrNamesTheOpsInTrouble) {
  const Problem p = forward_only();
  Search search(p, false);
  search.restart();
  const Candidate all = search.archive.plans().begin()->second;
  std::vector<double> trouble;
  const auto placed = search.local_search.place_exactly(all, 2 * all.cost.peak_bytes, 1, trouble);
  ASSERT_TRUE(placed.has_value());
  const Plan plan = search.fit_of(*placed).plan;
  EXPECT_EQ(plan.arena_bytes, placed->height);
  expect_apart(p, plan);
  EXPECT_FALSE(search.local_search.place_exactly(all, all.cost.peak_bytes - 1, 1, trouble).has_value());
  EXPECT_EQ(trouble.size(), p.ops.size());
}

}  // namespace
}  // namespace cairn::plan
