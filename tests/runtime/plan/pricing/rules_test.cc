#include "runtime/plan/pricing/rules.h"

#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

TEST(Rules, LeaveValuesOutsideOfPoliciesToThePlanner) {
  const Planned c(chain(6, 6400, 3));
  for (int v = 1; v <= 5; ++v) {
    ASSERT_GE(c.rules.across[v], 0);
    EXPECT_TRUE(c.rules.free[c.rules.across[v]]);
    EXPECT_EQ(c.rules.base[c.rules.across[v]], kKeepIt);
  }
  EXPECT_EQ(c.rules.across[0], -1);                    // persistent
  EXPECT_EQ(c.rules.across[6], c.intervals.first[6]);  // read by the loss, right behind
  EXPECT_FALSE(c.rules.free[c.rules.across[6]]);
}

TEST(Rules, WhatMayNotBeMadeAgainMayBeSent) {
  Problem p = chain(4);
  p.ops[1].recomputable = false;
  const Planned without(p);
  EXPECT_FALSE(without.rules.free[without.rules.across[2]]) << "there is no link";
  p.links.push_back({"host", 0, 1, 1, 1, 1 << 20});
  const Planned c(p);
  const int32_t interval = c.rules.across[2];
  EXPECT_TRUE(c.rules.allows(interval, over_link(0)));
  EXPECT_TRUE(c.rules.allows(interval, kKeepIt));
  EXPECT_FALSE(c.rules.allows(interval, p.backward_begin));
  EXPECT_TRUE(c.rules.allows(c.rules.across[1], p.backward_begin));
}

TEST(Rules, RecomputeKeepsWhatOtherRegionsRead) {
  const Planned c(chain(6, 6400, 3, Policy::kRecompute));
  EXPECT_EQ(c.rules.base[c.rules.across[1]], c.p.backward_begin);
  EXPECT_EQ(c.rules.base[c.rules.across[2]], c.p.backward_begin);
  EXPECT_EQ(c.rules.base[c.rules.across[3]], kKeepIt);
  EXPECT_FALSE(c.rules.free[c.rules.across[3]]);
}

TEST(Rules, OffloadTakesTheRegionsTierWhileItHasRoom) {
  Problem p = chain(6, 6400, 6, Policy::kOffload);
  p.links.push_back({"disk", 0, 1, 1, 1, 1 << 20});
  p.links.push_back({"host", 0, 1, 1, 1, 2 * 6400});
  p.regions[0].offload_tier = 1;
  const Planned c(p);
  EXPECT_EQ(c.rules.base[c.rules.across[1]], over_link(1));
  EXPECT_EQ(c.rules.base[c.rules.across[2]], over_link(1));
  EXPECT_EQ(c.rules.base[c.rules.across[3]], kKeepIt);
}

// b is not saved, but d is made again from it.
TEST(Rules, KeepHoldsForOpsMadeAgainAsWell) {
  Maker m;
  m.region("kept", -1, Policy::kKeep).value("x", 64, true).value("b", 64).value("d", 6400).value("e", 64);
  m.op("f1", 1, {"x"}, {"b"}, 0, true, 0).op("f2", 1, {"b"}, {"d"}).op("f3", 1, {"d"}, {"e"});
  m.backward_begin().op("loss", 1, {"e"}, {}).op("b2", 1, {"d"}, {});
  Planned c(m.p);
  c.set(2, m.p.backward_begin);
  EXPECT_EQ(c.order(), "f1 f2 f3 loss f2 b2");
}

TEST(Rules, SmallValuesDoNotLeave) {
  Problem p = chain(3, 640, 3, Policy::kOffload);
  p.links.push_back({"host", 0, 1, 1, 1, 1 << 20});
  const Planned c(p);
  EXPECT_EQ(c.rules.base[c.rules.across[1]], kKeepIt);
}

TEST(Rules, TheInnermostPolicyDecides) {
  Maker m;
  m.p = chain(4, 6400, 4);
  m.p.regions = {{"out", -1, Policy::kRecompute, -1}, {"out/in", 0, Policy::kKeep, -1}};
  m.p.ops[1].region = 1;
  const Planned c(m.p);
  EXPECT_EQ(c.rules.policy[1], Policy::kRecompute);
  EXPECT_EQ(c.rules.policy[2], Policy::kKeep);
  EXPECT_EQ(c.rules.base[c.rules.across[2]], kKeepIt);
}

}  // namespace
}  // namespace cairn::plan
