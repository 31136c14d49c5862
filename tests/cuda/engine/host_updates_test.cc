// Updates by the processors beside an (emulated) GPU: the same bits as on it, recorded or not.
#include "runtime/compile/update/host_updates.h"

#include "tests/runtime/compile/host_room.h"
#include "tests/runtime/compile/update_check.h"

namespace cairn::engine {
namespace {

using graph::AmpMode;
using When = ForcedChoices::When;

struct Form {
  AmpMode amp;
  DType parameters;
};
constexpr Form kForms[] = {
    {AmpMode::kOff, DType::kF32}, {AmpMode::kBf16, DType::kF32}, {AmpMode::kBf16, DType::kSplit}};

PlanOptions options_for(const char* optimizer, Form form, When where) {
  PlanOptions o;
  o.optimizer.name = optimizer;
  o.amp = form.amp;
  o.parameters = form.parameters;
  o.forced.host_updates = where;
  o.forced.defer_updates = When::kNever;
  o.tiers = {Tier::kHost};
  o.budget_share = 0.9;
  return o;
}

Result train(const std::shared_ptr<const CompiledPlan>& plan, const std::shared_ptr<device::Device>& device) {
  Session session(plan, device);
  fill(session);
  set_hyper(session);
  for (uint64_t i = 0; i < 4; ++i) step(session, i);
  expect_exact_memory(session);
  return trained(session);
}

TEST(CudaHostUpdates, HaveTheBitsOfTheDevices) {
  for (const char* optimizer : {"adamw", "adam", "lion", "sgd"})
    for (const Form& form : kForms) {
      SCOPED_TRACE(cat(optimizer, ' ', static_cast<int>(form.amp), ' ', dtype_name(form.parameters)));
      const auto device = device::open("cuda:0", {}), checked = device::checked(device);
      const auto resident = compile(layers(), *device, options_for(optimizer, form, When::kNever));
      const auto host = compile(layers(), *device, options_for(optimizer, form, When::kAlways));
      PlanOptions half = options_for(optimizer, form, When::kAlways);
      half.forced.host_update_share = 0.5;
      ASSERT_EQ(resident->deferred_updates(), 0);
      ASSERT_EQ(host->update_at(), Tier::kHost);
      ASSERT_EQ(host->deferred_updates(), 4) << "the weights; biases are small";
      const bool packs = form.amp == AmpMode::kBf16 && form.parameters == DType::kF32;
      ASSERT_EQ(host->joint->ops(graph::kRepack).empty(), !packs)
          << "the host's update writes packed weights";
      const Result expected = train(resident, device);
      EXPECT_EQ(train(host, device), expected) << "recorded";
      EXPECT_EQ(train(host, checked), expected);
      const auto both = compile(layers(), *device, half);
      EXPECT_EQ(both->deferred_updates(), 2);
      EXPECT_EQ(train(both, device), expected) << "the device streams the others meanwhile";
    }
}

// When updates are fused into backward, the host makes them beside it.
TEST(CudaHostUpdates, BesideBackwardHaveTheBitsOfTheDevices) {
  for (const char* optimizer : {"adamw", "sgd"})
    for (const Form& form : kForms)
      for (const double share : {1.0, 0.5}) {
        SCOPED_TRACE(
            cat(optimizer, ' ', static_cast<int>(form.amp), ' ', dtype_name(form.parameters), ' ', share));
        const auto device = device::open("cuda:0", {}), checked = device::checked(device);
        PlanOptions within = options_for(optimizer, form, When::kNever),
                    beside = options_for(optimizer, form, When::kAlways);
        within.fuse_update = beside.fuse_update = true;
        beside.forced.host_update_share = share;
        beside.forced.host_deferred_share = 0.5;
        const auto resident = compile(layers(), *device, within), host = compile(layers(), *device, beside);
        ASSERT_EQ(resident->update_at(), Tier::kDevice);
        ASSERT_EQ(host->host_updated.size(), share < 1 ? 2u : 4u);
        ASSERT_EQ(host->deferred_updates(), share < 1 ? 1 : 2);
        const bool packs = form.amp == AmpMode::kBf16 && form.parameters == DType::kF32;
        ASSERT_EQ(host->joint->ops(graph::kRepack).empty(), !packs);
        for (const graph::JointOp& pack : host->joint->ops(graph::kRepack))
          ASSERT_TRUE(host->host_updated.contains(pack.in[0]))
              << "nobody else writes packed weights within a run";
        const Result expected = train(resident, device);
        EXPECT_EQ(train(host, device), expected) << "recorded";
        EXPECT_EQ(train(host, checked), expected);
      }
}

// What the host tier has no room for streams from the disk, packed weights among it.
TEST(CudaHostUpdates, OfWhatLivesOnADiskHaveTheBitsOfTheDevices) {
  for (const char* optimizer : {"adamw", "lion", "sgd"})
    for (const Form& form : kForms) {
      const auto device = device::open("cuda:0", {}), checked = device::checked(device);
      const auto resident = compile(layers(), *device, options_for(optimizer, form, When::kNever));
      const Result expected = train(resident, device);
      for (const int64_t room : {500 << 10, 120 << 10})
        for (const double share : {1.0, 0.5}) {
          SCOPED_TRACE(cat(optimizer, ' ', static_cast<int>(form.amp), ' ', dtype_name(form.parameters), ' ',
                           room, ' ', share));
          PlanOptions o = options_for(optimizer, form, When::kAlways);
          o.tiers = {Tier::kHost, Tier::kDisk};
          o.costs = with_host_room(room);
          o.force_costs = true;
          o.forced.host_update_share = share;
          const auto host = compile(layers(), *device, o);
          ASSERT_EQ(host->deferred_updates(), share < 1 ? 2 : 4);
          if (room < 200 << 10 && share == 1) EXPECT_TRUE(host->streams_on_host());
          EXPECT_EQ(train(host, device), expected) << "recorded";
          if (share == 1) EXPECT_EQ(train(host, checked), expected);
        }
    }
}

// Gradients of several micro-batches that the processors add up, and their squares.
TEST(CudaHostAdds, HaveTheBitsOfTheDevices) {
  for (const Form& form : kForms)
    for (const When updates : {When::kNever, When::kAlways}) {
      SCOPED_TRACE(
          cat(static_cast<int>(form.amp), ' ', dtype_name(form.parameters), ' ', static_cast<int>(updates)));
      const auto device = device::open("cuda:0", {}), checked = device::checked(device);
      PlanOptions without = options_for("adamw", form, updates);
      without.micro_steps = 3;
      without.budget_share = updates == When::kAlways ? 0.6 : 0;
      without.smallest_budget = updates == When::kNever;
      without.forced.host_adds = When::kNever;
      PlanOptions with = without;
      with.forced.host_adds = When::kAlways;
      const auto fetched = compile(layers(), *device, without), host = compile(layers(), *device, with);
      ASSERT_TRUE(fetched->host_added.empty());
      ASSERT_FALSE(host->host_added.empty());
      const Result expected = engine::train(fetched, device, 3);
      EXPECT_EQ(engine::train(host, device, 3), expected) << "recorded";
      EXPECT_EQ(engine::train(host, checked, 3), expected);
    }
}

// Nor for states of 8 bits, which a GPU rounds by steps of its own.
TEST(CudaHostUpdates, AreNotForWhatIsNoElementwiseUpdate) {
  const auto device = device::open("cuda:0", {});
  for (const char* optimizer : {"adafactor", "muon", "adamw8"}) {
    const auto plan = compile(layers(), *device, options_for(optimizer, kForms[0], When::kAlways));
    for (const int32_t weight : plan->host_updated)
      EXPECT_LT(plan->joint->values[static_cast<size_t>(weight)].desc.shape.elements(), 4096);
  }
}

}  // namespace
}  // namespace cairn::engine
