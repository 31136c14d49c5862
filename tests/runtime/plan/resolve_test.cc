#include <gtest/gtest.h>

#include "make_problem.h"
#include "runtime/plan/schedule.h"

namespace cairn::plan {
namespace {

TEST(Resolve, FollowsTheClosureOfWhatIsMadeAgain) {
  const Problem p = chain(4);
  const Index index(p);
  Choices choices(p.values.size(), kKeepIt);
  choices[2] = choices[3] = kRemake;  // a2, a3
  const Resolved r = resolve(p, index, choices);
  EXPECT_EQ(r.rerun, (std::vector<uint8_t>{0, 1, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(r.later_uses[1], 2);  // b2, and f2 again
  EXPECT_EQ(r.later_uses[2], 2);  // b3, and f3 again
  EXPECT_EQ(r.later_uses[3], 1);
}

TEST(Resolve, DropsImpossibleChoices) {
  Problem p = chain(3);
  p.ops[0].recomputable = false;
  p.links.push_back({"host", 0, 1, 1, 1, 1 << 20});
  const Index index(p);
  const Resolved r = resolve(p, index, Choices(p.values.size(), kRemake));
  EXPECT_EQ(r.choices[0], kKeepIt);  // persistent
  EXPECT_EQ(r.choices[1], kKeepIt);  // its op may not run again
  EXPECT_EQ(r.choices[2], kRemake);
  EXPECT_EQ(r.choices[4], kKeepIt);  // made by backward
  EXPECT_FALSE(r.rerun[0]);
}

TEST(Resolve, AnOutputOfAnOpThatRunsAgainIsNotFetched) {
  Maker m;
  m.value("x", 64, true).value("a", 64).value("b", 64).value("g", 64, true).link("host", 100);
  m.op("f", 1, {"x"}, {"a", "b"}).turnaround().op("back", 1, {"a", "b"}, {"g"});
  const Index index(m.p);
  const Resolved r = resolve(m.p, index, {kKeepIt, kRemake, 0, kKeepIt});
  EXPECT_EQ(r.choices[2], kRemake);
}

}  // namespace
}  // namespace cairn::plan
