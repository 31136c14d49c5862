#include "runtime/plan/layout/layout.h"
#include "runtime/plan/pricing/schedule.h"
#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

TEST(Assign, PersistentValuesFillTheArenaFromZero) {
  Problem p = chain(3);
  p.ops[1].workspace_bytes = 640;
  const Planned c(p);
  const Index& index = c.index;
  const Schedule schedule = make_schedule(p, index, c.sequence(), {});
  Plan plan;
  plan.steps = schedule.steps;
  assign_offsets(p, index, plan);
  EXPECT_EQ(plan.value_offsets[0], 0);
  EXPECT_EQ(plan.value_offsets.back(), 64);
  EXPECT_EQ(plan.value_offsets[1], -1);
  EXPECT_EQ(plan.arena_bytes, 128 + 4 * 6400);
  EXPECT_EQ(plan.steps[plan.peak_step].kind, StepKind::kRun);
  for (const Step& s : plan.steps)
    for (size_t k = 0; k < s.offsets.size(); ++k)
      EXPECT_EQ(s.offsets[k] == -1, p.values[p.ops[s.index].outputs[k]].persistent);
}

TEST(Assign, EachTierHasItsOwnArena) {
  Problem p = chain(4);
  p.links.push_back({"host", 0, 6400, 6400, 1, 1 << 20});
  Planned c(p);
  c.set(1, over_link(0)).set(2, over_link(0));
  const Index& index = c.index;
  Plan plan;
  plan.steps = make_schedule(p, index, c.sequence(), {}).steps;
  assign_offsets(p, index, plan);
  EXPECT_EQ(plan.tier_arena_bytes, (std::vector<int64_t>{12800}));
  for (const Step& s : plan.steps) {
    const bool copies = s.kind == StepKind::kOut || s.kind == StepKind::kIn || s.kind == StepKind::kDrop;
    EXPECT_EQ(s.tier_offset >= 0, copies);
  }
}

}  // namespace
}  // namespace cairn::plan
