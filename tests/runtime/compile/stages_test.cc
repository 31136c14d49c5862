// What compiling is told, and what it says: the machine's facts, and where a resident is.
#include "runtime/compile/compile.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/streamed.h"
#include "tests/runtime/compile/update/card.h"

namespace cairn::engine {
namespace {

PlanOptions on_disk() {
  PlanOptions options;
  options.tiers = {Tier::kDisk};
  return options;
}

TEST(MachineFacts, TheRoomThatIsGivenIsKept) {
  const auto device = cpu();
  PlanOptions options = on_disk();
  options.policy = Policy::kOffload;
  const auto free = compile(mlp(), *device, options);
  const int64_t all = free->plan.tier_arena_bytes[0];
  ASSERT_GT(all, 4096);
  options.machine.disk_room_bytes = all / 2;
  const auto half = compile(mlp(), *device, options);
  EXPECT_EQ(half->problem.links[0].capacity_bytes, all / 2);
  EXPECT_LE(half->plan.tier_arena_bytes[0], all / 2);
}

TEST(MachineFacts, RatesThatAreGivenTimeTheDisk) {
  const auto device = cpu();
  PlanOptions options = on_disk();
  options.machine.disk = plan::Link{"disk", 1e-3, 3e8, 2e8, 0.5, 0};
  const auto plan = compile(mlp(), *device, options);
  EXPECT_EQ(plan->problem.links[0].out_bytes_per_second, 3e8);
  EXPECT_EQ(plan->problem.links[0].in_bytes_per_second, 2e8);
}

TEST(MachineFacts, ARefusalIsAnErrorWhereTheDiskIsUsed) {
  const auto device = cpu();
  PlanOptions options = on_disk();
  options.machine.disk_refusal = "no file can be made in 'there'";
  try {
    compile(mlp(), *device, options);
    FAIL() << "a disk that takes no files was planned for";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kIo);
    EXPECT_STREQ(error.what(), "disk tier: no file can be made in 'there'");
  }
  options.tiers = {Tier::kHost};
  EXPECT_NO_THROW(compile(mlp(), *device, options));
}

TEST(MachineFacts, TheDiskIsAskedForWhereOptionsOrRegionsNameIt) {
  const auto names = [](const std::shared_ptr<Graph>& graph, const PlanOptions& options) {
    const ProgramGraph program{"", graph};
    return may_use_disk({&program, 1}, options);
  };
  EXPECT_FALSE(names(mlp(), {}));
  EXPECT_TRUE(names(mlp(), on_disk()));
  EXPECT_TRUE(names(mlp(4, true, Policy::kOffload, "disk"), {}));
  PlanOptions row;
  row.region_policies = {{"l0", Policy::kOffload, Tier::kDisk}};
  EXPECT_TRUE(names(mlp(), row));
}

// Every resident has one place: on the device at an offset of its own, or in a tier.
TEST(Where, EveryResidentIsSomewhere) {
  const auto device = cpu();
  for (const bool streams : {false, true}) {
    const auto plan = tight_plan(layers(), *device, graph::AmpMode::kOff, Tier::kHost, 0, streams);
    size_t in_tier = 0;
    for (const graph::JointOp& update : plan->joint->ops(graph::kUpdate))
      for (const int32_t v : update.out) {
        if (v < 0) continue;
        const Where between = plan->where(v, Point::kBetween),
                    update_at = plan->where(v, Point::kDeviceUpdate);
        EXPECT_EQ(between.tier, update_at.tier);
        EXPECT_GE(between.offset, 0) << plan->joint->values[static_cast<size_t>(v)].name;
        EXPECT_EQ(between.on_device(), between.tier == Tier::kDevice);
        if (between.on_device()) continue;
        ++in_tier;
        EXPECT_EQ(update_at.streamed(), streams);
        EXPECT_EQ(update_at.in_place(), !streams);
        int64_t bytes = 0;
        for (const OffloadedPlace::Extent& extent : between.extents) bytes += extent.bytes;
        EXPECT_EQ(bytes, plan->joint->values[static_cast<size_t>(v)].desc.bytes());
      }
    EXPECT_GT(in_tier, 0u);
  }
}

// The host's processors use in place what copies would bring to the device, and have copies of the device's numbers.
TEST(Where, UpdatesOnTheHostFindThereWhatTheyUse) {
  const auto plan = tight(card(1e10, 1e10), ForcedChoices::When::kAlways);
  ASSERT_FALSE(plan->host_updated.empty());
  each_on_host(*plan, [&](const graph::JointOp& update) {
    const std::span<const int32_t> states = states_of(update);
    std::vector<int32_t> uses(states.begin(), states.end());
    uses.insert(uses.end(), {update.out[update_op::kParameter], update.in[update_op::kGrad]});
    for (const int32_t v : uses) {
      EXPECT_TRUE(plan->where(v, Point::kHostUpdate).in_place());
      EXPECT_TRUE(plan->where(v, Point::kDeviceUpdate).streamed());
      EXPECT_EQ(plan->where(v, Point::kHostUpdate).offset, plan->where(v, Point::kBetween).offset);
    }
    for (const int32_t v : host_scalars(update)) {
      EXPECT_TRUE(plan->where(v, Point::kBetween).on_device());
      EXPECT_EQ(plan->where(v, Point::kHostUpdate).tier, Tier::kHost);
      EXPECT_GE(plan->where(v, Point::kHostUpdate).offset, 0);
    }
  });
}

// A value of a run has no place of its own; an op of the micro-batch finds it where the plan's steps say.
TEST(Where, ValuesOfARunAreNowhereBetweenRuns) {
  const auto device = cpu();
  const auto plan = compile(mlp(), *device, {});
  for (size_t v = 0; v < plan->joint->values.size(); ++v)
    if (plan->joint->values[v].role == graph::Role::kActivation) {
      EXPECT_EQ(plan->where(static_cast<int32_t>(v), Point::kBetween).offset, -1);
      EXPECT_TRUE(plan->where(static_cast<int32_t>(v), Point::kMicroBatch).on_device());
    }
}

}  // namespace
}  // namespace cairn::engine
