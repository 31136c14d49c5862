#include "runtime/plan/pricing/sequence.h"

#include <rapidcheck.h>

#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

TEST(Sequence, KeepsUntilTheLastReader) {
  const Planned c(chain(3));
  EXPECT_EQ(c.order(), "f1 f2 f3 loss b3 b2 b1");
  const Sequence s = c.sequence();
  EXPECT_DOUBLE_EQ(s.seconds, 3 + 1 + 6);
  EXPECT_EQ(s.peak_bytes, 128 + 4 * 6400);  // a1 a2 a3 g3
  EXPECT_EQ(s.peak_item, 3);
  EXPECT_EQ(s.excess(128 + 3 * 6400), 2 * 6400.0);  // a1 a2 a3 g3, and a1 a2 g3 g2
}

TEST(Sequence, MakesAgainWhatIsMissingAndHoldsItFromTheRetentionPointOn) {
  Planned c(chain(4));
  c.set(1, 4).set(2, 4);
  EXPECT_EQ(c.order(), "f1 f2 f3 f4 loss b4 f1 f2 b3 b2 b1");
  // a1 is only passed through for b3, and made once more for b2.
  c.set(1, kNever);
  EXPECT_EQ(c.order(), "f1 f2 f3 f4 loss b4 f1 f2 b3 f1 b2 b1");
  c.set(1, 7);  // op 7 is b2
  EXPECT_EQ(c.order(), "f1 f2 f3 f4 loss b4 f1 f2 b3 f1 b2 b1");
  c.set(1, 6);
  EXPECT_EQ(c.order(), "f1 f2 f3 f4 loss b4 f1 f2 b3 b2 b1");
}

TEST(Sequence, AnEarlyRetentionPointMakesItForAnotherOp) {
  Planned c(chain(4));
  c.set(1, early(5));  // op 5 is b4, which does not read a1
  EXPECT_EQ(c.order(), "f1 f2 f3 f4 loss f1 b4 b3 b2 b1");
  c.set(1, early(7));  // op 7 is b2, which does
  EXPECT_EQ(c.order(), "f1 f2 f3 f4 loss b4 b3 f1 b2 b1");
  c.set(2, early(5));  // a2 needs a1, which is not held yet
  EXPECT_EQ(c.order(), "f1 f2 f3 f4 loss f1 f2 b4 b3 f1 b2 b1");
  c.set(1, over_link(0)).set(2, early(5));  // there already: nothing to make but a2
  EXPECT_EQ(c.order(), "f1 f2 f3 f4 loss f2 b4 b3 b2 b1");
}

// t is read in forward alone; y is made from it again.
TEST(Sequence, AValueBeyondItsLastReaderSparesItsMaker) {
  Maker m;
  m.value("x", 64, true).value("t", 64).value("y", 64).value("g", 64);
  m.op("f1", 1, {"x"}, {"t"}).op("f2", 1, {"t"}, {"y"});
  m.backward_begin().op("b", 1, {"x"}, {"g"}).op("c", 1, {"y", "g"}, {});
  Planned c(m.p);
  c.set(m.find("y"), 3);
  EXPECT_EQ(c.order(), "f1 f2 b f1 f2 c");
  c.retention_points[c.intervals.at(m.find("t"), 3)] = kKeepIt;
  EXPECT_EQ(c.order(), "f1 f2 b f2 c");
}

TEST(Sequence, AResidencyEndsWithTheLastUse) {
  Planned c(chain(2));
  for (const Residency& residency : c.sequence().residencies)
    if (residency.value == 2) EXPECT_EQ(residency.end, 2);  // a2 is read by the loss last
}

TEST(Sequence, OverALinkItIsGoneBetweenTwoUses) {
  Problem p = chain(3);
  p.links.push_back({"host", 0, 1, 1, 1, 1 << 20});
  Planned c(p);
  c.set(1, over_link(0));
  std::vector<Residency> residencies;
  for (const Residency& residency : c.sequence().residencies)
    if (residency.value == 1) residencies.push_back(residency);
  ASSERT_EQ(residencies.size(), 2u);
  EXPECT_EQ(residencies[0].to, 0);
  EXPECT_EQ(residencies[0].end, 1);
  EXPECT_EQ(residencies[1].from, 0);
  EXPECT_EQ(residencies[1].begin, 5);
}

// y and its companion c come from one op; making y again makes c, so c need not travel.
TEST(Sequence, WhatIsMadeAgainAnywayDoesNotLeave) {
  Maker m;
  m.value("x", 64, true).value("y", 64).value("c", 64).value("g", 64).link("host", 1);
  m.op("f", 1, {"x"}, {"y", "c"}).op("h", 1, {"y", "c"}, {});
  m.backward_begin().op("b", 1, {"y"}, {"g"}).op("d", 1, {"c", "g"}, {});
  Planned c(m.p);
  c.set(m.find("c"), over_link(0));
  const auto links = [&] {
    int count = 0;
    for (const Residency& residency : c.sequence().residencies)
      count += (residency.to >= 0) + (residency.from >= 0);
    return count;
  };
  EXPECT_EQ(links(), 2);
  c.set(m.find("y"), 2);
  EXPECT_EQ(c.order(), "f h f b d");
  EXPECT_EQ(links(), 0);
}

TEST(Sequence, RefusesToRunAgainWhatMayNot) {
  Problem p = chain(3);
  p.ops[1].recomputable = false;
  Planned c(p);
  c.set(2, 4);
  Sequence s;
  EXPECT_FALSE(Sequencer(c.p, c.index, c.intervals).run(c.retention_points, s));
  EXPECT_FALSE(Sequencer(c.p, c.index, c.intervals).run(c.rules.base, s, {3}));  // more items than wanted
  EXPECT_FALSE(Sequencer(c.p, c.index, c.intervals).run(c.rules.base, s, {100, 9.5}));  // 3 + 1 + 6 seconds
}

// Forward, too: a skip dropped after its first reader is made again for the second.
TEST(Sequence, IntervalsInsideForwardCountAsWell) {
  Maker m;
  m.value("x", 64, true).value("s", 640).value("t", 64).value("u", 64).value("g", 64, true);
  m.op("f1", 1, {"x"}, {"s"})
      .op("f2", 1, {"s"}, {"t"})
      .op("f3", 1, {"t"}, {"u"})
      .op("f4", 1, {"s", "u"}, {"g"});
  m.backward_begin().op("b", 1, {"u"}, {});
  Planned c(m.p);
  const int32_t interval = c.intervals.first[1] + 1;  // between f2 and f4
  EXPECT_EQ(c.intervals.at(1, 2), interval);
  c.retention_points[interval] = kNever;
  EXPECT_EQ(c.order(), "f1 f2 f3 f1 f4 b");
}

// Whatever the retention points, everything read is there, and first runs are in order.
TEST(SequenceProperty, IsAlwaysComplete) {
  EXPECT_TRUE(rc::check([](uint32_t seed) {
    Planned c(random_problem(seed, {12, false, false}));
    std::mt19937 random(seed);
    for (size_t g = 0; g < c.retention_points.size(); ++g)
      if (c.rules.free[g] && random() % 2)
        c.retention_points[g] =
            random() % 3 ? static_cast<int32_t>(random() % (c.p.ops.size() + 1)) | (random() % 3 ? 0 : kEarly)
                         : kNever;
    Sequence s;
    if (!Sequencer(c.p, c.index, c.intervals).run(c.retention_points, s)) return;
    int32_t next = 0;
    std::vector<int64_t> live(s.ops.size(), c.index.persistent_bytes);
    for (size_t i = 0; i < s.ops.size(); ++i) {
      if (s.ops[i] == next) ++next;
      live[i] += c.p.ops[s.ops[i]].workspace_bytes;
      for (int32_t v : c.index.inputs[s.ops[i]])
        RC_ASSERT(std::any_of(s.residencies.begin(), s.residencies.end(), [&](const Residency& residency) {
          return residency.value == v && residency.begin < static_cast<int32_t>(i) &&
                 static_cast<int32_t>(i) <= residency.end;
        }));
    }
    RC_ASSERT(next == static_cast<int32_t>(c.p.ops.size()));
    for (const Residency& residency : s.residencies)
      for (int32_t i = residency.begin; i <= residency.end; ++i) live[i] += c.p.values[residency.value].bytes;
    RC_ASSERT(live == s.live);
  }));
}

}  // namespace
}  // namespace cairn::plan
