#include "runtime/report/baselines.h"

#include <gtest/gtest.h>

#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

TEST(Baselines, AChainInRegionsByHand) {
  // 16 ops in 8 regions of 2; sqrt(8) rounds to groups of 3 regions.
  const Problem p = chain(16, 6400, 2);
  const std::vector<Baseline> found = baselines(p);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "keep_all");
  EXPECT_DOUBLE_EQ(found[0].seconds, 16 + 1 + 32);
  EXPECT_EQ(found[0].arena_bytes, keep_all_arena(p));
  // Per region, the first op's output is its own: made again once in each. The last region's second, too: only the
  // loss reads it, which is the first op of backward here.
  EXPECT_EQ(found[1].name, "per_layer");
  EXPECT_DOUBLE_EQ(found[1].seconds, found[0].seconds + 8 + 1);
  // Keeps the last output of each region. Fullest at the first op of backward: 7 of those (the loss has read
  // the eighth), the one made again, two gradients.
  EXPECT_EQ(found[1].peak_bytes, 128 + 6400 * (7 + 1 + 2));
  // Groups of 6, 6 and 4 ops: all but the last of each is made again, and that of the last.
  EXPECT_EQ(found[2].name, "sqrt_n");
  EXPECT_DOUBLE_EQ(found[2].seconds, found[0].seconds + 5 + 5 + 4);
  EXPECT_NE(found[2].words.find("groups of 3"), std::string::npos);
  for (const Baseline& b : found) EXPECT_GE(b.arena_bytes, b.peak_bytes);
}

TEST(Baselines, OneRegionAroundEverythingIsNoLayer) {
  Problem inner = chain(6, 6400, 2), outer = inner;
  for (Region& region : outer.regions) {
    region.name = "model/" + region.name;
    region.parent = 0;
  }
  outer.regions.insert(outer.regions.begin(), Region{"model", -1, Policy::kPlannerDecides, -1});
  for (Op& op : outer.ops)
    if (op.region >= 0) ++op.region;
  const Layers a(inner, Index(inner)), b(outer, Index(outer));
  EXPECT_EQ(a.count, 3);
  EXPECT_EQ(a.of_op, b.of_op);
  EXPECT_EQ(a.of_op[6], -1) << "the loss belongs to no layer";
  EXPECT_EQ(a.of_op[0], a.of_op[12]) << "backward of the first";
  EXPECT_EQ(baselines(inner)[1].arena_bytes, baselines(outer)[1].arena_bytes);
}

TEST(Baselines, WithoutRegionsStagesAreLayers) {
  Problem p = chain(16);
  p.regions.clear();
  for (Op& op : p.ops) op.region = -1;
  const std::vector<Baseline> found = baselines(p);
  EXPECT_EQ(found[1].arena_bytes, found[0].arena_bytes) << "every output of a chain is a boundary";
  EXPECT_LT(found[2].arena_bytes, found[0].arena_bytes);
  EXPECT_GT(found[2].seconds, found[0].seconds);
}

// A model with ops in place or without them: whichever takes less, for each row by itself.
TEST(Baselines, OfTwoFormsTheSmallerCounts) {
  const Problem p = chain(16, 6400, 2);
  Problem larger = p;
  larger.values[0].bytes += 6400;
  const std::vector<Baseline> alone = baselines(p);
  for (const auto& found : {baselines(p, &larger), baselines(larger, &p)})
    for (size_t k = 0; k < alone.size(); ++k) {
      EXPECT_EQ(found[k].arena_bytes, alone[k].arena_bytes);
      EXPECT_DOUBLE_EQ(found[k].seconds, alone[k].seconds);
    }
}

// As a plan is made: ops in place count only where they take less.
TEST(Baselines, OfTwoFormsThatTakeAsMuchTheOneWithMoreOpsCounts) {
  const Problem p = chain(16, 6400, 2);
  Problem more = p;
  Op nothing;
  nothing.name = "nothing";
  nothing.seconds = 1;
  more.ops.push_back(nothing);
  const std::vector<Baseline> alone = baselines(more);
  for (const auto& found : {baselines(p, &more), baselines(more, &p)})
    for (size_t k = 0; k < alone.size(); ++k) EXPECT_DOUBLE_EQ(found[k].seconds, alone[k].seconds);
}

TEST(Baselines, NoPlanByHandBeatsTheSolverWithinItsBytes) {
  for (const uint32_t seed : support::seeds(60)) {
    RandomOptions options;
    options.links = false;
    Problem p = random_problem(seed, options);
    for (Region& region : p.regions) region.policy = Policy::kPlannerDecides;
    double all = 0;
    for (const Op& op : p.ops) all += op.seconds;
    for (const Baseline& b : baselines(p)) {
      EXPECT_GE(b.seconds, all * (1 - 1e-12));
      EXPECT_LE(b.seconds, 2 * all * (1 + 1e-12)) << "each op at most twice";
      p.budget_bytes = std::max<int64_t>(1, b.arena_bytes);
      if (b.arena_bytes > 0) EXPECT_LE(solve(p).predicted_seconds, b.seconds * (1 + 1e-9)) << seed << b.name;
    }
  }
}

TEST(Baselines, AnEmptyProblem) {
  for (const Baseline& b : baselines(Problem())) {
    EXPECT_EQ(b.arena_bytes, 0);
    EXPECT_EQ(b.seconds, 0);
  }
}

}  // namespace
}  // namespace cairn::plan
