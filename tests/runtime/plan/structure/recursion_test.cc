#include "runtime/plan/structure/recursion.h"

#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

// Memory falls far below what one level of recompute can do, and time grows like the logarithm of the depth.
TEST(Recursion, TimeGrowsSlowlyAsMemoryFalls) {
  const Planned c(chain(128));
  const Stages stages(c.p, c.index);
  Evaluator evaluate(c.p, c.index, c.intervals);
  Sequence sequence;
  double before = 0;
  for (int blocks : {40, 20, 12, 9}) {
    RetentionPoints t;
    ASSERT_TRUE(recurse(c.p, c.index, c.intervals, c.rules, stages, blocks * 6400, t)) << blocks;
    const Cost cost = evaluate(t, {}, sequence);
    ASSERT_TRUE(cost.valid);
    EXPECT_LE(cost.peak_bytes, 128 + (blocks + 1) * 6400) << blocks;
    EXPECT_GE(cost.seconds, before);
    EXPECT_LE(cost.seconds, c.index.total_seconds * 2) << blocks;
    before = cost.seconds;
  }
}

TEST(Recursion, NoRoomNoWay) {
  const Planned c(chain(16));
  RetentionPoints t;
  EXPECT_FALSE(recurse(c.p, c.index, c.intervals, c.rules, Stages(c.p, c.index), 6400, t));
  EXPECT_FALSE(recurse(c.p, c.index, c.intervals, c.rules, Stages(c.p, c.index), 0, t));
}

}  // namespace
}  // namespace cairn::plan
