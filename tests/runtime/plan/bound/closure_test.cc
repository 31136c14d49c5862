#include "runtime/plan/bound/closure.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/plan/make_problem.h"
#include "tests/runtime/plan/subsets.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// h helps to make v again; v is read by the backward op at 4, after the program point of op 3.
Problem helped(int64_t help_bytes) {
  Maker m;
  m.value("in", 1, true)
      .value("h", help_bytes)
      .value("v", 10)
      .value("w", 1)
      .value("g", 1)
      .value("end", 1, true);
  m.op("make h", 5, {"in"}, {"h"}).op("make v", 1, {"h"}, {"v"}).op("make w", 1, {"in"}, {"w"});
  m.backward_begin().op("loss", 1, {"w"}, {"g"}).op("back", 1, {"v", "g"}, {"end"});
  return m.p;
}

TEST(Closure, PricesEachOpOfAChain) {
  const Problem p = chain(5);
  const Index index(p);
  Closure closure(p, index, 5);
  EXPECT_EQ(closure.busy_bytes(), 2 * 6400);
  EXPECT_EQ(closure.largest_bytes(), 6400);
  EXPECT_NEAR(closure.dearest(), 1.0 / 6400, 1e-12);
  const Cut low = closure.cut(1e-4), high = closure.cut(2e-4);
  EXPECT_NEAR(low.flow, 4 * 0.64, 1e-9);
  EXPECT_EQ(low.bytes, 4 * 6400);
  EXPECT_EQ(low.seconds, 0);
  EXPECT_NEAR(high.flow, 4, 1e-9);
  EXPECT_EQ(high.bytes, 0);
  EXPECT_EQ(high.seconds, 4);
}

TEST(Closure, AnOpMadeAgainNeedsItsInputs) {
  const Problem large = helped(10), small = helped(2);
  Closure keep(large, Index(large), 3);
  EXPECT_NEAR(keep.cut(0.3).flow, 3, 1e-9);  // v stays
  EXPECT_EQ(keep.cut(0.3).bytes, 10);
  EXPECT_NEAR(keep.cut(0.7).flow, 6, 1e-9);  // both are made again
  EXPECT_EQ(keep.cut(0.7).seconds, 6);
  Closure help(small, Index(small), 3);
  EXPECT_NEAR(help.cut(1).flow, 3, 1e-9);  // h stays for v's sake
  EXPECT_EQ(help.cut(1).bytes, 2);
  EXPECT_EQ(help.cut(1).seconds, 1);
}

// The later op finds room at h1's maker first, and has to give way to the other one, which has no choice.
TEST(Closure, RedirectsTheGreedyFlow) {
  Maker m;
  m.value("in", 1, true).value("h1", 100).value("h2", 100).value("v1", 1).value("v2", 1);
  m.value("w", 0).value("g", 0).value("end", 1, true);
  m.op("m1", 1, {"in"}, {"h1"}).op("m2", 1, {"in"}, {"h2"});
  m.op("o1", 0, {"h1"}, {"v1"}).op("o2", 0, {"h1", "h2"}, {"v2"}).op("last", 1, {"in"}, {"w"});
  m.backward_begin().op("loss", 1, {"w"}, {"g"}).op("back", 1, {"v1", "v2", "g"}, {"end"});
  Closure closure(m.p, Index(m.p), 5);
  EXPECT_NEAR(closure.cut(1).flow, 2, 1e-9);
}

// At every program point and price the flow is the least cost of all sets of ops, and the cut attains it;
// also among the sets that hold, or leave out, one op.
TEST(Closure, IsTheCheapestOfAllSets) {
  for (const uint32_t seed : support::seeds(300)) {
    const Problem p = random_problem(seed, {4, false, false});
    const Index index(p);
    std::mt19937 random(seed);
    const auto ops = static_cast<int32_t>(p.ops.size());
    for (int32_t at = 1; at < ops; ++at) {
      Closure closure(p, index, at);
      const double price = closure.dearest() * (random() % 300) * 0.01;
      double least = std::numeric_limits<double>::infinity();
      for_each_subset(p, index, at, [&](uint32_t, double seconds, double bytes) {
        least = std::min(least, seconds + price * bytes);
      });
      const Cut cut = closure.cut(price);
      const double slack = 1e-9 * (1 + least);
      ASSERT_NEAR(cut.flow, least, slack) << seed;
      ASSERT_LE(cut.flow, least * (1 + 1e-15)) << seed;
      ASSERT_NEAR(cut.seconds + price * cut.bytes, least, slack) << seed;

      if (closure.ops() == 0) continue;
      const auto op = static_cast<int32_t>(random() % static_cast<uint32_t>(closure.ops()));
      closure.fix(op, Closure::Decision::kStays);
      const double stays = closure.cut(price).flow;
      ASSERT_FALSE(closure.remade(op)) << seed;
      double remade = std::numeric_limits<double>::infinity();
      if (closure.seconds(op) < remade) {
        closure.fix(op, Closure::Decision::kRemade);
        remade = closure.cut(price).flow;
        ASSERT_TRUE(closure.remade(op)) << seed;
      }
      ASSERT_NEAR(std::min(stays, remade), least, slack) << seed;
      closure.fix(op, Closure::Decision::kFree);
      ASSERT_EQ(closure.cut(price).flow, cut.flow) << seed;
    }
  }
}

}  // namespace
}  // namespace cairn::plan
