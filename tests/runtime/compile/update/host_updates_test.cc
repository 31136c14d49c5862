// Which updates the host's processors make, and what their plans promise. Bits: tests/runtime/step/deferred_test.cc.
#include "runtime/compile/update/host_updates.h"

#include "runtime/compile/update/streamed.h"
#include "runtime/exec/measure.h"
#include "tests/runtime/compile/update/card.h"
#include "tests/runtime/compile/update_check.h"

namespace cairn::engine {
namespace {

using When = ForcedChoices::When;

PlanOptions options_for(When where, uint32_t micro_steps) {
  PlanOptions o;
  o.forced.host_updates = where;
  o.forced.defer_updates = When::kNever;
  o.forced.update_on_device = true;
  o.tiers = {Tier::kHost};
  o.budget_share = 0.9;
  o.micro_steps = micro_steps;
  return o;
}

TEST(HostUpdates, ChangeNoBitOfSeveralMicroBatches) {
  const auto device = device::checked(device::open("cpu", {.threads = 1}));
  for (const uint32_t micro_steps : {1u, 3u}) {
    const auto resident = compile(layers(), *device, options_for(When::kNever, micro_steps));
    const auto host = compile(layers(), *device, options_for(When::kAlways, micro_steps));
    ASSERT_EQ(resident->update_at(), Tier::kDevice);
    ASSERT_EQ(host->update_at(), Tier::kHost);
    ASSERT_EQ(host->deferred_updates(), 4) << "the weights; biases are small";
    EXPECT_EQ(train(host, device, micro_steps), train(resident, device, micro_steps));
  }
}

TEST(HostUpdates, AreSpansOfALaneOfTheirOwn) {
  const auto device = device::open("cpu", {.threads = 1});
  PlanOptions o = options_for(When::kAlways, 1);
  o.forced.host_update_share = 0.5;
  const auto plan = compile(layers(), *device, o);
  Session session(plan, device);
  fill(session);
  set_hyper(session);
  step(session, 0);
  session.trace(true);
  session.run({7, 1, 0});
  std::set<std::string> on_host;
  for (const Span& span : session.spans()) {
    EXPECT_FALSE(span_name(*plan, span).empty());
    if (span.lane != device::Lane::kHost) continue;
    EXPECT_EQ(span_tier(*plan, span), Tier::kHost);
    on_host.insert(span_name(*plan, span));
  }
  EXPECT_EQ(on_host, (std::set<std::string>{"adamw l1.down", "adamw l1.up"}));
}

// Forward fetches their weights all the time, and its first op waits for none; beside backward the device's updates use the link all the
// time, not only in the end.
TEST(HostUpdates, AreSpreadOverForward) {
  const auto device = device::open("cpu", {.threads = 1});
  const auto on_host = [&](double share, bool fused) {
    PlanOptions o = options_for(When::kAlways, 1);
    o.forced.host_update_share = share;
    o.fuse_update = fused;
    const auto plan = compile(layers(4), *device, o);
    std::string names;
    for (const int32_t weight : plan->host_updated)
      names += plan->joint->values[static_cast<size_t>(weight)].name + ' ';
    return names;
  };
  EXPECT_EQ(on_host(0.5, false), "l1.up l2.up l3.up l3.down ");
  EXPECT_EQ(on_host(0.25, false), "l2.up l3.down ");
  EXPECT_EQ(on_host(0.875, false), "l0.down l1.up l1.down l2.up l2.down l3.up l3.down ");
  EXPECT_EQ(on_host(0.5, true), "l1.up l2.up l3.up l3.down ");
}

TEST(HostUpdates, AreMadeWhereTheyAreFaster) {
  const auto fast = card(1e9, 1e11), slow = card(1e9, 1e8);
  const auto with = tight(fast, When::kWhereFaster), without = tight(fast, When::kNever);
  EXPECT_EQ(with->update_at(), Tier::kHost);
  EXPECT_LT(seconds(*with), 0.8 * seconds(*without));
  EXPECT_EQ(tight(slow, When::kWhereFaster)->update_at(), Tier::kDevice);
  EXPECT_EQ(tight(card(1e9, 0), When::kWhereFaster)->update_at(), Tier::kDevice)
      << "nothing is known of the host";
  EXPECT_EQ(tight(card(1e12, 1e11), When::kWhereFaster)->update_at(), Tier::kDevice) << "copies hide";
}

// Optimizer state crosses both ways: of all that the host has no room for, it is the dearest on a disk.
TEST(HostUpdates, LeaveStateOnTheDeviceThatOnlyASlowerTierHasRoomFor) {
  const auto device = device::open("cpu", {.threads = 1});
  PlanOptions o = options_for(When::kWhereFaster, 1);
  o.forced.update_on_device = false;
  o.tiers = {Tier::kHost, Tier::kDisk};
  o.costs = card(1e9, 1e11, 1200 << 10);
  o.budget_share = 0;
  o.budget_bytes = 700 << 10;
  const auto plan = compile(layers(), *device, o);
  EXPECT_EQ(plan->update_at(), Tier::kHost);
  EXPECT_EQ(plan->resident_bytes(Tier::kDisk), 0);
  EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
}

// When it is a small part of the budget, the device's updates do not wait for it.
TEST(HostUpdates, LeaveStateOnTheDeviceThatTheUpdateWouldWaitFor) {
  PlanOptions o = tight_options(card(1e9, 1e11), When::kAlways);
  o.forced.host_update_share = 0.5;
  const auto in_tier = [&](const CompiledPlan& plan) {  // of the state of the device's updates
    int64_t all = 0, there = 0;
    for (const graph::JointOp& update : plan.joint->ops(graph::kUpdate))
      for (const int32_t state : states_of(update))
        if (!plan.on_host(update))
          (plan.offloaded.contains(state) ? there : all) += stored_bytes(*plan.joint, state);
    return std::pair(there, all + there);
  };
  o.budget_bytes = 1 << 20;
  const auto plan = compiled(o);
  const auto [none, bytes] = in_tier(*plan);
  EXPECT_EQ(none, 0);
  EXPECT_GT(bytes, o.budget_bytes / 4);
  o.budget_bytes = bytes + bytes / 2;
  const auto tighter = compiled(o);
  EXPECT_GT(in_tier(*tighter).first, 0) << "it is no small part of this budget";
  EXPECT_GT(tighter->update_seconds, plan->update_seconds);
}

}  // namespace
}  // namespace cairn::engine
