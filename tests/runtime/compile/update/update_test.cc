// Packs after an update; a backend that launches ops one by one.
#include "tests/runtime/compile/update_check.h"

namespace cairn::engine {
namespace {

PlanOptions half() {
  PlanOptions o;
  o.amp = graph::AmpMode::kBf16;
  return o;
}

bool packed_weights(const CompiledPlan& plan) { return !plan.joint->ops(graph::kRepack).empty(); }

TEST(Update, LeavesPackedWeightsFresh) {
  const auto device = cpu();
  const auto plan = compile(layers(), *device, half());
  if (!packed_weights(*plan)) GTEST_SKIP() << "needs amx";
  expect_fresh_packed_weights(plan, device);
}

TEST(Update, LeavesPackedWeightsFreshWhereStateLivesInATier) {
  const auto device = cpu();
  for (const auto& [tier, streams] :
       {std::pair(Tier::kHost, true), {Tier::kHost, false}, {Tier::kDisk, true}}) {
    bool behind_parts = false;
    for (const double share : {0.0, 0.3, 0.6}) {
      SCOPED_TRACE(testing::Message()
                   << kTierNames[static_cast<size_t>(tier)] << ' ' << share << ' ' << streams);
      const auto plan = tight_plan(layers(), *device, graph::AmpMode::kBf16, tier, share, streams);
      if (!packed_weights(*plan)) GTEST_SKIP() << "needs amx";
      EXPECT_FALSE(plan->offloaded.empty());
      expect_fresh_packed_weights(plan, device);
      behind_parts = behind_parts || packed_behind_parts(*plan);
    }
    EXPECT_EQ(behind_parts, streams);
  }
}

// The first traced run makes packed weights, so that their seconds are known.
TEST(Update, PacksAreTracedOnce) {
  const auto device = cpu();
  const auto plan = compile(layers(), *device, half());
  if (!packed_weights(*plan)) GTEST_SKIP() << "needs amx";
  Session session(plan, device);
  fill(session);
  set_hyper(session);
  step(session, 0);
  session.trace(true);
  const auto packed = [&] {
    step(session, 1);
    return std::count_if(session.spans().begin(), session.spans().end(),
                         [](const Span& s) { return s.phase == graph::kRepack; });
  };
  EXPECT_EQ(packed(), static_cast<int64_t>(plan->joint->ops(graph::kRepack).size()));
  EXPECT_EQ(packed(), 0);
}

TEST(Update, WithoutBatchesThereIsALaunchForEach) {
  const auto device = cpu();
  const auto plan = compile(layers(), *device, half());
  const graph::JointGraph& joint = *plan->joint;
  EXPECT_EQ(plan->program(graph::kGradientNorm).launches.size(), joint.ops(graph::kGradientNorm).size());
  EXPECT_EQ(update_launches(*plan), static_cast<int64_t>(joint.ops(graph::kUpdate).size()));
  // The frozen weight's pack is made once.
  size_t frozen = 0;
  for (const graph::JointOp& op : joint.ops(graph::kRepack))
    frozen += joint.values[static_cast<size_t>(op.in[0])].name == "frozen";
  EXPECT_EQ(plan->program(graph::kUpdate).launches.size(),
            joint.ops(graph::kUpdate).size() + joint.ops(graph::kRepack).size() - frozen);
}

}  // namespace
}  // namespace cairn::engine
