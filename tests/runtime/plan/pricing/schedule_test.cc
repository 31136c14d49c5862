#include "runtime/plan/pricing/schedule.h"

#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

// "f1 f2 -a1 ..." : runs by name, "-v" free, ">v" out, "<v" in, "w>v" and "w<v" waits, "~v" drop.
Schedule schedule(const Planned& c, Pace pace = {}) {
  return make_schedule(c.p, c.index, c.sequence(), pace);
}

std::string words(const Problem& p, const Schedule& schedule) {
  constexpr const char* kMarks[] = {"", "-", ">", "w>", "<", "w<", "~"};
  std::string out;
  for (const Step& s : schedule.steps) {
    if (!out.empty()) out += ' ';
    out += kMarks[static_cast<size_t>(s.kind)];
    out += s.kind == StepKind::kRun ? p.ops[s.index].name : p.values[s.index].name;
  }
  return out;
}

TEST(Schedule, KeepsUntilTheLastUse) {
  const Planned c(chain(2));
  const Schedule s = schedule(c);
  EXPECT_EQ(words(c.p, s), "f1 f2 loss -a2 b2 -a1 -g2 b1 -g1");
  EXPECT_DOUBLE_EQ(s.seconds, 7);
  EXPECT_EQ(s.peak_bytes, 128 + 3 * 6400);
}

TEST(Schedule, MakesAgainOnceAndKeepsTheChainUntilItsLastUse) {
  Planned c(chain(4));
  c.set(1, 4).set(2, 4);
  const Schedule s = schedule(c);
  EXPECT_EQ(words(c.p, s), "f1 f2 -a1 f3 -a2 f4 loss -a4 b4 -a3 -g4 f1 f2 b3 -g3 -a2 b2 -a1 -g2 b1 -g1");
  EXPECT_DOUBLE_EQ(s.seconds, 4 + 1 + 8 + 2);
}

// 6400 bytes at 6400 bytes/s: a1's copy out runs beside f2; it returns beside b3, just in time for b2.
TEST(Schedule, CopiesHideUnderCompute) {
  Problem p = chain(4);
  p.links.push_back({"host", 0, 6400, 6400, 1, 1 << 20});
  Planned c(p);
  c.set(1, over_link(0));
  const Schedule s = schedule(c);
  EXPECT_EQ(words(c.p, s),
            "f1 >a1 f2 w>a1 -a1 f3 f4 loss -a4 b4 -a3 -g4 <a1 b3 -a2 -g3 w<a1 ~a1 b2 -g2 -a1 b1 -g1");
  EXPECT_DOUBLE_EQ(s.seconds, 13);
  EXPECT_EQ(s.tier_peak_bytes, (std::vector<int64_t>{6400}));
  // Without a window, the copy in starts right before its reader, and compute waits.
  const Schedule lean = schedule(c, {0});
  EXPECT_EQ(words(c.p, lean),
            "f1 >a1 f2 w>a1 -a1 f3 f4 loss -a4 b4 -a3 -g4 b3 -a2 -g3 <a1 w<a1 ~a1 b2 -g2 -a1 b1 -g1");
  EXPECT_DOUBLE_EQ(lean.seconds, 14);
}

// a1's copy out takes until f4 has ended, and what comes back for b2 could do so beside the loss and b4.
TEST(Schedule, CopiesAreWaitedForOnlyWhereTheLimitIsExceeded) {
  Problem p = chain(4);
  p.links.push_back({"host", 0, 2133, 2133, 1, 1 << 20});
  Planned c(p);
  c.set(1, over_link(0));
  const Schedule hurried = schedule(c), lean = schedule(c, {0});
  ASSERT_LT(lean.peak_bytes, hurried.peak_bytes);
  ASSERT_GT(lean.seconds, hurried.seconds);
  Pace pace;
  pace.limit_bytes = hurried.peak_bytes;
  EXPECT_EQ(words(c.p, schedule(c, pace)), words(c.p, hurried));
  double slower = hurried.seconds;
  for (pace.limit_bytes = hurried.peak_bytes - 1; pace.limit_bytes >= lean.peak_bytes;
       pace.limit_bytes -= 6400) {
    const Schedule s = schedule(c, pace);
    EXPECT_LE(s.peak_bytes, pace.limit_bytes);
    EXPECT_GE(s.seconds, slower);
    EXPECT_LE(s.seconds, lean.seconds);
    slower = s.seconds;
  }
  EXPECT_GT(slower, hurried.seconds);
}

TEST(Schedule, AValueWhoseCopyIsTooLateStays) {
  Problem p = chain(2);
  p.links.push_back({"host", 0, 1, 1, 1, 1 << 20});
  Planned c(p);
  c.set(1, over_link(0));
  EXPECT_EQ(words(p, schedule(c)), "f1 >a1 f2 loss -a2 b2 -g2 w>a1 -a1 ~a1 b1 -g1");
}

TEST(Schedule, AFullTierTakesNoMore) {
  Problem p = chain(4);
  p.links.push_back({"host", 0, 6400, 6400, 1, 6400 + 100});
  Planned c(p);
  c.set(1, over_link(0)).set(2, over_link(0));
  const Schedule s = schedule(c);
  EXPECT_EQ(words(c.p, s).find(">a2"), std::string::npos);
  EXPECT_EQ(s.tier_peak_bytes, (std::vector<int64_t>{6400}));
}

TEST(Schedule, WhatARegionSendsAwayIsGoneAtTheBackwardBegin) {
  Problem p = chain(2);
  p.links.push_back({"host", 0, 1, 6400, 1, 1 << 20});
  p.regions[0].policy = Policy::kOffload;
  Planned c(p);
  c.set(1, over_link(0));
  EXPECT_EQ(words(p, schedule(c)), "f1 >a1 f2 w>a1 -a1 <a1 loss -a2 w<a1 ~a1 b2 -g2 -a1 b1 -g1");
}

// The second output is still on the device when its op runs again, and a dead value goes at once.
TEST(Schedule, SeveralOutputs) {
  Maker m;
  m.value("x", 64, true)
      .value("a", 64)
      .value("b", 64)
      .value("c", 64)
      .value("d", 64)
      .value("g", 64, true)
      .value("h", 64, true);
  m.op("f", 1, {"x"}, {"a", "b", "c"}).op("f2", 1, {"a"}, {"d"});
  m.backward_begin().op("b2", 1, {"d", "b"}, {"g"}).op("b1", 1, {"a", "b"}, {"h"});
  Planned c(m.p);
  c.set(1, 2);
  EXPECT_EQ(words(m.p, schedule(c)), "f -c f2 -a b2 -d f -c b1 -b -a");
}

}  // namespace
}  // namespace cairn::plan
