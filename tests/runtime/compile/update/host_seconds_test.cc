// What updates on the host are said to take, and how many of them plans have.
#include "runtime/compile/update/host_seconds.h"

#include <algorithm>
#include <limits>

#include "runtime/compile/cost_query.h"
#include "tests/runtime/compile/update/card.h"
#include "tests/support/seeds.h"

namespace cairn::engine {
namespace {

using When = ForcedChoices::When;

double bytes_of(const CompiledPlan& plan, int32_t value) {
  return static_cast<double>(plan.joint->values[static_cast<size_t>(value)].desc.bytes());
}

// Four weights of different sizes: of all shares of them, the one chosen is among the best.
TEST(HostSeconds, ShareTheWorkWithTheDevice) {
  struct Machine {
    double memory, host_disk;
    int64_t room;
  };
  for (const Machine& m : support::cases<Machine>({{1.5e9, 0, int64_t{1} << 40},
                                                   {3e9, 0, int64_t{1} << 40},
                                                   {6e9, 0, int64_t{1} << 40},
                                                   {1e11, 2e9, 900 << 10},
                                                   {1e11, 4e9, 900 << 10},
                                                   {6e9, 4e9, 500 << 10}},
                                                  3)) {
    const auto costs =
        card(1e9, m.memory, m.room, {.link = 1e9, .host_in = m.host_disk, .host_out = m.host_disk});
    PlanOptions o = tight_options(costs, When::kAlways);
    if (m.host_disk > 0) o.tiers = {Tier::kHost, Tier::kDisk};
    double least = std::numeric_limits<double>::infinity();
    for (const double share : {0.3, 0.5, 0.7, 0.9, 1.0}) {
      o.forced.host_update_share = share;
      least = std::min(least, seconds(*compiled(o)));
    }
    o.forced.host_updates = When::kWhereFaster;
    EXPECT_LE(seconds(*compiled(o)), least * 1.02) << m.memory << ' ' << m.host_disk;
  }
}

// The bound holds for every plan with the same weights updated on the host, and the wait is no more than all updates take.
TEST(HostSeconds, AreWaitedForNoLongerThanTheyTake) {
  for (const double rate : {1e8, 1e9, 1e10, 1e11}) {
    const auto costs = card(1e9, rate);
    const auto plan = tight(costs, When::kAlways);
    double all = 0, weights = 0;
    for (const graph::JointOp& update : plan->joint->ops(graph::kUpdate))
      if (plan->on_host(update)) {
        const double elements = bytes_of(*plan, update.out[0]) / 4;
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

// Of several micro-batches one runs beside the host; the others follow. And that one's recompute follows the host's last update.
TEST(HostSeconds, CountOnceInAStepOfSeveralMicroBatches) {
  for (const double rate : {1e8, 1e9, 1e10}) {
    PlanOptions o = tight_options(card(1e9, rate), When::kAlways);
    o.micro_steps = 4;
    const auto plan = compiled(o);
    const double step = 4 * plan->plan.predicted_seconds + plan->update_seconds;
    const double least = 4 * plan->plan.bound_seconds + plan->update_seconds;
    EXPECT_LE(least, step * (1 + 1e-9));
    EXPECT_GE(least * (1 + 1e-9), least_seconds_with_host_updates(*plan) + 3 * plan->problem.op_seconds());
  }
}

// Weights are updated in the order in which forward uses them: each op waits for its own and those before.
TEST(HostSeconds, SayWhenEachOpMayBegin) {
  const auto plan = tight(card(1e9, 1e8), When::kAlways);
  const std::vector<double> earliest = earliest_with_host_updates(*plan);
  ASSERT_EQ(earliest.size(), plan->problem.ops.size());
  EXPECT_TRUE(std::is_sorted(earliest.begin(), earliest.end()));
  EXPECT_GE(earliest.back() * (1 + 1e-9), host_seconds(*plan));
  EXPECT_LT(earliest.front(), earliest.back());
}

// Beside backward no run is shorter than all updates on the host, with what copies of their gradients and weights take of its memory.
TEST(HostSeconds, BesideBackwardAreThoseOfAllUpdatesWithTheirCopies) {
  for (const double rate : {1e9, 1e10, 1e11}) {
    PlanOptions o = tight_options(card(1e9, rate), When::kAlways);
    o.fuse_update = true;
    const auto plan = compiled(o);
    ASSERT_TRUE(plan->updates_beside_backward());
    double all = 0;
    for (const graph::JointOp& update : plan->joint->ops(graph::kUpdate))
      if (plan->on_host(update)) all += (28 + 8) * bytes_of(*plan, update.out[0]) / 4 / rate;
    EXPECT_NEAR(least_seconds_with_host_updates(*plan), all, 0.01 * all);
    EXPECT_GE(seconds(*plan), least_seconds_with_host_updates(*plan));
  }
}

// What is left to the next run is spread over all updates, and never waited for longer than with none of them or all.
TEST(HostSeconds, DeferEvenly) {
  size_t some = 0;
  const auto device = device::open("cpu", {.threads = 1});
  for (const double rate : {1e9, 3e9, 1e10}) {
    PlanOptions o = tight_options(card(1e10, rate), When::kAlways);
    o.fuse_update = true;
    CompiledPlan plan = *compile(layers(16), *device, o);
    ASSERT_TRUE(plan.updates_beside_backward());
    plan.host_deferred.clear();
    const double none = host_wait_seconds(plan, 0);
    plan.host_deferred = plan.host_updated;
    const double all = host_wait_seconds(plan, 0);
    plan.host_deferred = choose_deferred(plan);
    EXPECT_LE(host_wait_seconds(plan, 0), std::min(none, all) * (1 + 1e-9));
    const size_t updates = plan.host_updated.size(), deferred = plan.host_deferred.size();
    some += deferred > 0 && deferred < updates;
    double taken = 0, passed = 0, largest = 0;
    for (const graph::JointOp& update : plan.joint->ops(graph::kUpdate)) {
      if (!plan.on_host(update)) continue;
      passed += bytes_of(plan, update.out[0]);
      largest = std::max(largest, bytes_of(plan, update.out[0]));
      if (plan.defers(update)) taken += bytes_of(plan, update.out[0]);
    }
    const double share = taken / passed;
    double seen = 0, seen_taken = 0;
    for (const graph::JointOp& update : plan.joint->ops(graph::kUpdate)) {
      if (!plan.on_host(update)) continue;
      seen += bytes_of(plan, update.out[0]);
      if (plan.defers(update)) seen_taken += bytes_of(plan, update.out[0]);
      EXPECT_NEAR(seen_taken, share * seen, 2 * largest);
    }
  }
  EXPECT_GT(some, 0u);
}

// Of what lives on the disk, the drives' rates for the host count, both ways together, or the host's memory.
TEST(HostSeconds, OfADiskAreTheSlowerOfMemoryAndDrives) {
  for (const double memory : {1e9, 1e11})
    for (const double in : {3e9, 9e9}) {
      const double out = 5e9, both = 0.7;
      PlanOptions o = tight_options(
          card(1e9, memory, 500 << 10, {.link = 1e9, .host_in = in, .host_out = out}), When::kAlways);
      o.tiers = {Tier::kHost, Tier::kDisk};
      const auto plan = compiled(o);
      ASSERT_TRUE(plan->streams_on_host());
      const auto away = [&](int32_t v) {
        return plan->where(v, Point::kHostUpdate).tier == Tier::kDisk ? bytes_of(*plan, v) : 0;
      };
      double all = 0;
      for (const graph::JointOp& update : plan->joint->ops(graph::kUpdate)) {
        if (!plan->on_host(update)) continue;
        const int32_t weight = update.out[update_op::kParameter];
        double changed = away(weight);
        for (size_t k = 0; k < 2; ++k) changed += away(update.out[update_op::kFirstState + k]);
        const double read =
            changed + away(update.in[update_op::kGrad]) + away(weight);  // the device fetches it, too
        const double moved = 7 * bytes_of(*plan, weight) + bytes_of(*plan, weight) + read + changed;
        const double reads = read / in, writes = changed / out;
        all += std::max(moved / memory, std::max(reads, writes) + std::min(reads, writes) * (1 / both - 1));
      }
      EXPECT_NEAR(host_seconds(*plan), all, 0.001 * all);
      EXPECT_LE(plan->host_wait_seconds, all * 1.01);
      EXPECT_GE(seconds(*plan), least_seconds_with_host_updates(*plan));
      EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
    }
}

// The drives together may be faster than the card's link: then what only they have room for is updated on the host.
TEST(HostSeconds, DecideWhetherADiskIsUsed) {
  const auto planned = [](double host_rate) {
    PlanOptions o =
        tight_options(card(1e9, 1e11, 500 << 10, {.link = 1e9, .host_in = host_rate, .host_out = host_rate}),
                      When::kWhereFaster);
    o.tiers = {Tier::kHost, Tier::kDisk};
    return compiled(o);
  };
  const auto fast = planned(8e9), same = planned(1e9);
  EXPECT_TRUE(fast->streams_on_host());
  EXPECT_EQ(fast->update_at(), Tier::kHost);
  EXPECT_LT(seconds(*fast), 0.9 * seconds(*same));
}

}  // namespace
}  // namespace cairn::engine
