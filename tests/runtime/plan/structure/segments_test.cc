#include "runtime/plan/structure/segments.h"

#include "bench/plan/irregular.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/structure/recursion.h"
#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

// The fastest plan that segments give whose real peak is within so many bytes beside the persistent ones.
std::optional<Cost> within(const Planned& c, int32_t groups, int64_t bytes) {
  Segments segments(c.p, c.index, c.intervals, c.rules, groups);
  Evaluator evaluate(c.p, c.index, c.intervals);
  Sequence sequence;
  std::optional<Cost> best;
  for (int percent = 50; percent <= 150; percent += 5) {
    const std::optional<RetentionPoints> t = segments.plan(bytes / 100 * percent);
    if (!t) continue;
    const Cost cost = evaluate(*t, {}, sequence);
    EXPECT_TRUE(cost.valid);
    if (cost.peak_bytes - c.index.persistent_bytes <= bytes && (!best || cost.seconds < best->seconds))
      best = cost;
  }
  return best;
}

int64_t activations(const Planned& c) { return c.sequence().peak_bytes - c.index.persistent_bytes; }

// What the encoder gives crosses every cut of the decoder, so that one value more than the stages' crosses there.
TEST(Segments, HoldOnceWhatCrossesManyCuts) {
  const Planned c(bench::irregular_problem("encoder_decoder", 12, 1));
  const std::optional<Cost> cost = within(c, 96, activations(c) / 10);
  ASSERT_TRUE(cost);
  EXPECT_LE(cost->seconds, 1.5 * c.index.total_seconds);
  EXPECT_FALSE(Stages(c.p, c.index).chain);
}

// All outputs of a dense block cross every cut inside it.
TEST(Segments, ManyValuesMayCross) {
  const Planned c(bench::irregular_problem("dense", 12, 1));
  const std::optional<Cost> cost = within(c, 96, activations(c) / 4);
  ASSERT_TRUE(cost);
  EXPECT_LE(cost->seconds, 1.4 * c.index.total_seconds);
}

TEST(Segments, MoreRoomIsNeverSlower) {
  const Planned c(chain(128));
  Segments segments(c.p, c.index, c.intervals, c.rules, 64);
  Evaluator evaluate(c.p, c.index, c.intervals);
  Sequence sequence;
  double before = std::numeric_limits<double>::infinity();
  for (int blocks : {8, 12, 20, 40, 130}) {
    const std::optional<RetentionPoints> t = segments.plan(blocks * 6400);
    ASSERT_TRUE(t) << blocks;
    const Cost cost = evaluate(*t, {}, sequence);
    ASSERT_TRUE(cost.valid);
    EXPECT_LE(cost.seconds, before) << blocks;
    EXPECT_LE(cost.seconds, (blocks < 12 ? 3 : 2) * c.index.total_seconds) << blocks;
    before = cost.seconds;
  }
  EXPECT_LE(before, c.index.total_seconds * 1.01);
}

TEST(Segments, NoRoomNoWay) {
  const Planned c(chain(16));
  Segments segments(c.p, c.index, c.intervals, c.rules, 8);
  EXPECT_TRUE(segments.possible());
  EXPECT_FALSE(segments.plan(6400));
  EXPECT_FALSE(segments.plan(0));
}

TEST(Segments, NothingWithoutBackward) {
  const Planned c(bench::irregular_problem("layered", 40, 1));
  Segments segments(c.p, c.index, c.intervals, c.rules, 8);
  EXPECT_FALSE(segments.possible());
  EXPECT_FALSE(segments.plan(int64_t{1} << 40));
}

}  // namespace
}  // namespace cairn::plan
