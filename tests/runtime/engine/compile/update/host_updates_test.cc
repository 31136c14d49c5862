// Which updates the host's processors make, and what their plans promise. Bits: tests/runtime/step/deferred_test.cc.
#include "runtime/engine/compile/update/host_updates.h"

#include <limits>

#include "runtime/engine/exec/measure.h"
#include "tests/runtime/engine/update_check.h"

namespace cairn::engine {
namespace {

using Where = PlanOptions::Defer;

PlanOptions options_for(Where where, uint32_t micro_steps) {
  PlanOptions o;
  o.host_updates = where;
  o.defer_updates = Where::kNever;
  o.update_on_device = true;
  o.tiers = {Tier::kHost};
  o.budget_share = 0.9;
  o.micro_steps = micro_steps;
  return o;
}

Result train(const std::shared_ptr<const CompiledPlan>& plan, const std::shared_ptr<device::Device>& device,
             uint32_t micro_steps) {
  Session session(plan, device);
  fill(session);
  set_hyper(session);
  for (uint64_t i = 0; i < 3; ++i) {
    for (uint32_t micro = 0; micro < micro_steps; ++micro) session.run({7, i, micro});
    session.gradient_squares();
    session.update({});
  }
  expect_exact_memory(session);
  return trained(session);
}

TEST(HostUpdates, ChangeNoBitOfSeveralMicroBatches) {
  const auto device = device::checked(device::open("cpu", {.threads = 1}));
  for (const uint32_t micro_steps : {1u, 3u}) {
    const auto resident = compile(layers(), *device, options_for(Where::kNever, micro_steps));
    const auto host = compile(layers(), *device, options_for(Where::kAlways, micro_steps));
    ASSERT_EQ(resident->update_at(), Tier::kDevice);
    ASSERT_EQ(host->update_at(), Tier::kHost);
    ASSERT_EQ(host->deferred_updates(), 4) << "the weights; biases are small";
    EXPECT_EQ(train(host, device, micro_steps), train(resident, device, micro_steps));
  }
}

TEST(HostUpdates, AreSpansOfALaneOfTheirOwn) {
  const auto device = device::open("cpu", {.threads = 1});
  PlanOptions o = options_for(Where::kAlways, 1);
  o.host_update_share = 0.5;
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

// The model of a card whose link is slow, beside processors with a fast memory.
std::shared_ptr<const costs::Table> card(double link, double host_memory,
                                         int64_t host_bytes = int64_t{1} << 40) {
  costs::DeviceModel model;
  model.name = "Card";
  model.memory_bytes = 1 << 30;
  model.f32_flops_per_second = model.bf16_flops_per_second = model.f16_flops_per_second = 1e13;
  model.memory_bytes_per_second = 1e12;
  model.host_memory_bytes_per_second = host_memory;
  model.links = {{"host", 1e-6, link, link, 0.7, host_bytes},
                 {"disk", 1e-6, link / 100, link / 100, 0.7, int64_t{1} << 40}};
  costs::Table table;
  table.model = model;
  return std::make_shared<const costs::Table>(table);
}

std::shared_ptr<const CompiledPlan> tight(const std::shared_ptr<const costs::Table>& costs, Where where) {
  const auto device = device::open("cpu", {.threads = 1});
  PlanOptions o = options_for(where, 1);
  o.update_on_device = false;
  o.costs = costs;
  o.budget_share = 0;
  o.budget_bytes = 700 << 10;
  return compile(layers(), *device, o);
}

double seconds(const CompiledPlan& plan) { return plan.plan.predicted_seconds + plan.update_seconds; }

TEST(HostUpdates, AreMadeWhereTheyAreFaster) {
  const auto fast = card(1e9, 1e11), slow = card(1e9, 1e8);
  const auto with = tight(fast, Where::kWhereFaster), without = tight(fast, Where::kNever);
  EXPECT_EQ(with->update_at(), Tier::kHost);
  EXPECT_LT(seconds(*with), 0.8 * seconds(*without));
  EXPECT_EQ(tight(slow, Where::kWhereFaster)->update_at(), Tier::kDevice);
  EXPECT_EQ(tight(card(1e9, 0), Where::kWhereFaster)->update_at(), Tier::kDevice)
      << "nothing is known of the host";
  EXPECT_EQ(tight(card(1e12, 1e11), Where::kWhereFaster)->update_at(), Tier::kDevice) << "copies hide";
}

// Four weights of different sizes: of all shares of them, the one chosen is among the best.
TEST(HostUpdates, ShareTheWorkWithTheDevice) {
  const auto device = device::open("cpu", {.threads = 1});
  for (const double rate : {1.5e9, 3e9, 6e9}) {
    PlanOptions o = options_for(Where::kAlways, 1);
    o.update_on_device = false;
    o.costs = card(1e9, rate);
    o.budget_share = 0;
    o.budget_bytes = 700 << 10;
    double least = std::numeric_limits<double>::infinity();
    for (const double share : {0.3, 0.5, 0.7, 0.9, 1.0}) {
      o.host_update_share = share;
      least = std::min(least, seconds(*compile(layers(), *device, o)));
    }
    EXPECT_LE(seconds(*tight(o.costs, Where::kWhereFaster)), least * 1.02) << rate;
  }
}

// Optimizer state crosses both ways: of all that the host has no room for, it is the dearest on a disk.
TEST(HostUpdates, LeaveStateOnTheDeviceThatOnlyASlowerTierHasRoomFor) {
  const auto device = device::open("cpu", {.threads = 1});
  PlanOptions o = options_for(Where::kWhereFaster, 1);
  o.update_on_device = false;
  o.tiers = {Tier::kHost, Tier::kDisk};
  o.costs = card(1e9, 1e11, 1200 << 10);
  o.budget_share = 0;
  o.budget_bytes = 700 << 10;
  const auto plan = compile(layers(), *device, o);
  EXPECT_EQ(plan->update_at(), Tier::kHost);
  EXPECT_EQ(plan->resident_bytes(Tier::kDisk), 0);
  EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
}

// The bound holds for every plan with the same weights updated on the host, and the wait is no more than all updates take.
TEST(HostUpdates, AreWaitedForNoLongerThanTheyTake) {
  for (const double rate : {1e8, 1e9, 1e10, 1e11}) {
    const auto costs = card(1e9, rate);
    const auto plan = tight(costs, Where::kAlways);
    double all = 0, weights = 0;
    for (const graph::JointOp& update : plan->joint->ops(graph::kUpdate))
      if (plan->on_host(update)) {
        const double elements = static_cast<double>(
            plan->joint->values[static_cast<size_t>(update.out[0])].desc.shape.elements());
        all += 28 * elements / rate;  // reads weight, gradient and two moments, writes all but the gradient
        weights += 4 * elements / rate;
      }
    EXPECT_GE(plan->host_wait_seconds, 0);
    EXPECT_LE(plan->host_wait_seconds, (all + weights) * 1.01);
    const double least = least_seconds_with_host_updates(*plan);
    EXPECT_GE(least, all * 0.99);
    EXPECT_GE(seconds(*plan), least);
  }
}

}  // namespace
}  // namespace cairn::engine
