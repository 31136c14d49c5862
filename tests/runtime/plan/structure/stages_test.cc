#include "runtime/plan/structure/stages.h"

#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

TEST(Stages, AChainIsCutAtEveryValue) {
  const Planned c(chain(4));
  const Stages stages(c.p, c.index);
  ASSERT_EQ(stages.all.size(), 4u);
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(stages.all[s].begin, s);
    EXPECT_EQ(stages.all[s].end, s + 1);
    EXPECT_EQ(stages.all[s].in, s ? s : -1);
    EXPECT_EQ(stages.all[s].out, s < 3 ? s + 1 : -1);
  }
  // a4 is read by the loss alone, a3 by b4.
  EXPECT_EQ(stages.all[3].back_begin, 4);
  EXPECT_EQ(stages.all[3].back_end, 5);
  EXPECT_EQ(stages.all[2].back_begin, 5);
  EXPECT_EQ(stages.of_backward[8], -1);  // b1 reads nothing of forward
  EXPECT_EQ(stages.backward_live[5], 2 * 6400);
}

TEST(Stages, ASkipAcrossManyCutsIsLeftOut) {
  Problem p = chain(40);
  p.ops[39].inputs.push_back(1);  // a1 is read at the end once more
  const Planned c(p);
  EXPECT_GE(Stages(c.p, c.index).all.size(), 30u);
}

TEST(Stages, BranchesStayTogether) {
  Maker m;
  m.value("x", 64, true).value("a", 64).value("b", 64).value("c", 64).value("d", 64).value("g", 64, true);
  m.op("f1", 1, {"x"}, {"a"})
      .op("f2", 1, {"a"}, {"b"})
      .op("f3", 1, {"a"}, {"c"})
      .op("f4", 1, {"b", "c"}, {"d"});
  m.backward_begin().op("b4", 1, {"d", "b", "c"}, {"g"});
  const Planned c(m.p);
  const Stages stages(c.p, c.index);
  ASSERT_EQ(stages.all.size(), 2u);
  EXPECT_EQ(stages.all[0].out, 1);
  EXPECT_EQ(stages.all[1].end, 4);
}

}  // namespace
}  // namespace cairn::plan
