#include "runtime/plan/schedule.h"

#include <gtest/gtest.h>

#include "make_problem.h"

namespace cairn::plan {
namespace {

// "f1 f2 -a1 ..." : runs by name, "-v" free, ">v" out, "<v" in, "w>v" and "w<v" waits, "~v" drop.
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
  const Problem p = chain(2);
  const Index index(p);
  const Schedule s = make_schedule(p, index, Choices(p.values.size(), kKeepIt), {});
  EXPECT_EQ(words(p, s), "f1 f2 loss -a2 b2 -a1 -g2 b1 -g1");
  EXPECT_DOUBLE_EQ(s.seconds, 7);
  EXPECT_EQ(s.peak_bytes, 128 + 3 * 6400);
}

TEST(Schedule, MakesAgainOnceAndKeepsTheChainUntilItsLastUse) {
  const Problem p = chain(4);
  const Index index(p);
  Choices choices(p.values.size(), kKeepIt);
  choices[1] = choices[2] = kRemake;
  const Schedule s = make_schedule(p, index, choices, {});
  EXPECT_EQ(words(p, s), "f1 f2 -a1 f3 -a2 f4 loss -a4 b4 -a3 -g4 f1 f2 b3 -a2 -g3 b2 -a1 -g2 b1 -g1");
  EXPECT_DOUBLE_EQ(s.seconds, 4 + 1 + 8 + 2);
}

// 6400 bytes at 6400 bytes/s: a1's copy out runs beside f2; it returns beside b3, just in time for b2.
TEST(Schedule, CopiesHideUnderCompute) {
  Problem p = chain(4);
  p.links.push_back({"host", 0, 6400, 6400, 1, 1 << 20});
  const Index index(p);
  Choices choices(p.values.size(), kKeepIt);
  choices[1] = 0;
  const Schedule s = make_schedule(p, index, choices, {});
  EXPECT_EQ(words(p, s),
            "f1 >a1 f2 w>a1 -a1 f3 f4 loss -a4 b4 -a3 -g4 <a1 b3 -a2 -g3 w<a1 ~a1 b2 -a1 -g2 b1 -g1");
  EXPECT_DOUBLE_EQ(s.seconds, 13);
  EXPECT_EQ(s.tier_peak_bytes, (std::vector<int64_t>{6400}));
  // Without a window, the copy in starts right before its reader, and compute waits.
  const Schedule lean = make_schedule(p, index, choices, {0});
  EXPECT_EQ(words(p, lean),
            "f1 >a1 f2 w>a1 -a1 f3 f4 loss -a4 b4 -a3 -g4 b3 -a2 -g3 <a1 w<a1 ~a1 b2 -a1 -g2 b1 -g1");
  EXPECT_DOUBLE_EQ(lean.seconds, 14);
}

TEST(Schedule, AValueWhoseCopyIsTooLateStays) {
  Problem p = chain(2);
  p.links.push_back({"host", 0, 1, 1, 1, 1 << 20});
  const Index index(p);
  Choices choices(p.values.size(), kKeepIt);
  choices[1] = 0;
  EXPECT_EQ(words(p, make_schedule(p, index, choices, {})), "f1 >a1 f2 loss -a2 b2 w>a1 -a1 ~a1 -g2 b1 -g1");
}

TEST(Schedule, AFullTierTakesNoMore) {
  Problem p = chain(4);
  p.links.push_back({"host", 0, 6400, 6400, 1, 6400 + 100});
  const Index index(p);
  Choices choices(p.values.size(), kKeepIt);
  choices[1] = choices[2] = 0;
  const Schedule s = make_schedule(p, index, choices, {});
  EXPECT_EQ(words(p, s).find(">a2"), std::string::npos);
  EXPECT_EQ(s.tier_peak_bytes, (std::vector<int64_t>{6400}));
}

TEST(Schedule, WhatARegionSendsAwayIsGoneAtTheTurnaround) {
  Problem p = chain(2);
  p.links.push_back({"host", 0, 1, 6400, 1, 1 << 20});
  p.regions[0].policy = Policy::kOffload;
  const Index index(p);
  Choices choices(p.values.size(), kKeepIt);
  choices[1] = 0;
  EXPECT_EQ(words(p, make_schedule(p, index, choices, {})),
            "f1 >a1 f2 w>a1 -a1 <a1 loss -a2 w<a1 ~a1 b2 -a1 -g2 b1 -g1");
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
  m.turnaround().op("b2", 1, {"d", "b"}, {"g"}).op("b1", 1, {"a", "b"}, {"h"});
  const Index index(m.p);
  Choices choices(m.p.values.size(), kKeepIt);
  choices[1] = kRemake;
  EXPECT_EQ(words(m.p, make_schedule(m.p, index, choices, {})), "f -c f2 -a b2 -d f -c b1 -a -b");
}

}  // namespace
}  // namespace cairn::plan
