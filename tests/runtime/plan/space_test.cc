#include "runtime/plan/space.h"

#include <gtest/gtest.h>

#include "make_problem.h"

namespace cairn::plan {
namespace {

std::string remade(const Problem& p, const Choices& choices) {
  std::string out;
  for (size_t v = 0; v < choices.size(); ++v)
    if (choices[v] == kRemake) out += p.values[v].name + " ";
  return out;
}

TEST(Space, AGroupKeepsWhatOthersRead) {
  const Problem p = chain(8, 6400, 2);
  const Index index(p);
  const Space space(p, index);
  EXPECT_EQ(remade(p, space.choices({})), "");
  EXPECT_EQ(remade(p, space.choices({0, 0, 1, 2, 0, {}})), "a1 a3 ");     // two regions of two layers
  EXPECT_EQ(remade(p, space.choices({0, 0, 2, 1, 0, {}})), "a1 a2 a3 ");  // both as one
  EXPECT_EQ(space.group_count({0, 0, 2, 0, 0, {}}), 2);
  EXPECT_EQ(remade(p, space.choices({0, 1, 3, 1, 0, {}})), "a1 a2 ");  // ops as units
}

TEST(Space, TheInnermostExplicitPolicyWins) {
  Maker m;
  m.value("x", 64, true)
      .value("a", 8192)
      .value("b", 8192)
      .value("c", 8192)
      .value("d", 8192)
      .value("g", 64, true);
  m.region("outer", -1, Policy::kRecompute).region("outer/keep", 0, Policy::kKeep).region("outer/free", 0);
  m.op("fa", 1, {"x"}, {"a"}, 0, true, 0)
      .op("fb", 1, {"a"}, {"b"}, 0, true, 1)
      .op("fc", 1, {"b"}, {"c"}, 0, true, 2);
  m.op("fd", 1, {"c"}, {"d"}).turnaround().op("back", 1, {"a", "b", "c", "d"}, {"g"});
  const Index index(m.p);
  const Space space(m.p, index);
  EXPECT_EQ(remade(m.p, space.choices({})), "a ");  // b is kept by its region; c is read outside
  EXPECT_EQ(space.policy(m.find("c")), Policy::kRecompute);
  EXPECT_EQ(space.policy(m.find("b")), Policy::kKeep);
  EXPECT_EQ(space.policy(m.find("d")), Policy::kPlannerDecides);
}

TEST(Space, OffloadTakesSavedValuesOfAPageOrMoreWhileThereIsRoom) {
  Problem p = chain(4, 6400, 4, Policy::kOffload);
  p.values[2].bytes = 1000;
  p.links.push_back({"host", 0, 1e6, 1e6, 1, 10000});
  const Index index(p);
  const Choices choices = Space(p, index).choices({});
  EXPECT_EQ(choices[1], 0);
  EXPECT_EQ(choices[2], kKeepIt);  // under a page
  EXPECT_EQ(choices[3], kKeepIt);  // no room
}

// Seconds per byte: f2 frees most bytes per second, f1 least.
TEST(Space, CheapOpsComeInOrderOfSecondsPerByte) {
  Problem p = chain(3);
  p.ops[0].seconds = 3;
  p.ops[1].seconds = 1;
  p.ops[2].seconds = 2;
  const Index index(p);
  const Space space(p, index);
  Candidate c;
  c.cheap = 1;
  EXPECT_EQ(remade(p, space.choices(c)), "a2 ");
  c.cheap = 2;
  EXPECT_EQ(remade(p, space.choices(c)), "a2 a3 ");
}

// residual = x + y, whose backward reads nothing: making it again would mean keeping y instead.
TEST(Space, NothingIsGainedByKeepingAnInputInstead) {
  Maker m;
  m.value("x", 64, true).value("y", 6400).value("r", 6400).value("z", 64).value("g", 64, true);
  m.op("fy", 5, {"x"}, {"y"}, 0, false).op("add", 1, {"x", "y"}, {"r"}).op("fz", 1, {"r"}, {"z"});
  m.turnaround().op("back", 1, {"r", "z"}, {"g"});
  const Index index(m.p);
  Candidate c;
  for (const Candidate& other : Space(m.p, index).grid()) c.cheap = std::max(c.cheap, other.cheap);
  EXPECT_EQ(remade(m.p, Space(m.p, index).choices(c)), "z ");
}

}  // namespace
}  // namespace cairn::plan
