// Updates on the host of what lives on the disk: the program that streams it, its bits and its memory. A session's whole way:
// tests/runtime/step/deferred_test.cc, tests/runtime/io/pairs_test.cc.
#include "runtime/compile/update/host_program.h"

#include "runtime/compile/residency/tier_memory.h"
#include "runtime/exec/measure.h"
#include "tests/runtime/compile/host_room.h"
#include "tests/runtime/compile/update_check.h"
#include "tests/support/seeds.h"

namespace cairn::engine {
namespace {

using device::Lane;
using When = ForcedChoices::When;

PlanOptions options_for(When where, int64_t host_room, const char* optimizer = "adamw", double share = 1,
                        uint32_t micro_steps = 1) {
  PlanOptions o;
  o.optimizer.name = optimizer;
  o.forced.host_updates = where;
  o.forced.host_update_share = share;
  o.forced.defer_updates = When::kNever;
  o.forced.update_on_device = true;
  o.tiers = {Tier::kHost, Tier::kDisk};
  o.costs = with_host_room(host_room);
  o.force_costs = true;
  o.budget_share = 0.9;
  o.micro_steps = micro_steps;
  return o;
}

int64_t on_lane(const Program& program, Opcode opcode, Lane lane) {
  return std::count_if(program.code.begin(), program.code.end(),
                       [&](const Instruction& i) { return i.opcode == opcode && i.lane == lane; });
}

// Of the four weights with all that their updates use the host has room for everything, for weights and some gradients, for
// hardly more than the ring.
constexpr int64_t kRooms[] = {4 << 20, 900 << 10, 500 << 10, 200 << 10};

TEST(HostProgram, StreamsWithoutChangingABit) {
  const auto device = device::checked(device::open("cpu", {.threads = 1}));
  for (const char* optimizer : support::cases<const char*>({"adamw", "lion", "sgd"}, 3))
    for (const uint32_t micro_steps : {1u, 3u}) {
      const auto resident =
          compile(layers(), *device, options_for(When::kNever, 0, optimizer, 1, micro_steps));
      ASSERT_EQ(resident->update_at(), Tier::kDevice);
      const Result expected = train(resident, device, micro_steps);
      for (const int64_t room : kRooms)
        for (const double share : {1.0, 0.5}) {
          SCOPED_TRACE(cat(optimizer, ' ', micro_steps, ' ', room, ' ', share));
          const auto host =
              compile(layers(), *device, options_for(When::kAlways, room, optimizer, share, micro_steps));
          ASSERT_EQ(host->host_updated.size(), share < 1 ? 2 : 4) << "weights; biases are small";
          if (room == kRooms[0]) EXPECT_FALSE(host->streams_on_host());
          if (room == kRooms[3]) EXPECT_TRUE(host->streams_on_host());
          if (share == 1) EXPECT_EQ(host->resident_bytes(Tier::kDisk) > 0, host->streams_on_host());
          EXPECT_EQ(train(host, device, micro_steps), expected);
        }
    }
}

// What is in the ring counts, and is no more than there is room for: a read waits for the write of what lay there before, and
// for nothing else.
TEST(HostProgram, ReadsAheadThroughABoundedRing) {
  const auto device = device::open("cpu", {.threads = 1});
  const auto plan = compile(layers(), *device, options_for(When::kAlways, 500 << 10));
  ASSERT_TRUE(plan->streams_on_host());
  EXPECT_LE(plan->host_ring_bytes, 96 << 10);
  EXPECT_GE(plan->host_ring, 0);
  EXPECT_LE(plan->host_ring + plan->host_ring_bytes, plan->offloaded_bytes[1]);
  EXPECT_LE(tier_peak_bytes(*plan, Tier::kHost), 500 << 10);
  const Program& program = plan->host_program;
  const int64_t reads = on_lane(program, Opcode::kCopy, Lane::kHostIn),
                writes = on_lane(program, Opcode::kCopy, Lane::kHostOut);
  EXPECT_GT(reads, 20);
  EXPECT_EQ(writes, reads) << "states go back with every piece";
  const int64_t waits = on_lane(program, Opcode::kWait, Lane::kHostIn);
  EXPECT_LT(waits, reads);
  EXPECT_GE(waits, reads - 6);
  for (const CopyJob& job : program.copies) {
    if (job.to != Tier::kHost || job.from != Tier::kDisk) continue;
    EXPECT_GE(job.to_offset, plan->host_ring);
    EXPECT_LE(job.to_offset + job.bytes, plan->host_ring + plan->host_ring_bytes);
  }
}

TEST(HostProgram, ItsLanesAreTracedAndItsTrafficIsReported) {
  const auto device = device::open("cpu", {.threads = 1});
  const auto plan = compile(layers(), *device, options_for(When::kAlways, 200 << 10));
  Session session(plan, device);
  fill(session);
  set_hyper(session);
  step(session, 0);
  session.trace(true);
  const RunReport report = session.run({7, 1, 0});
  int64_t spans = 0;
  for (const Span& span : session.spans()) {
    if (span.lane != Lane::kHostIn && span.lane != Lane::kHostOut) continue;
    ++spans;
    EXPECT_EQ(span_tier(*plan, span), Tier::kDisk);
    EXPECT_FALSE(span_name(*plan, span).empty());
  }
  EXPECT_EQ(spans, on_lane(plan->host_program, Opcode::kCopy, Lane::kHostIn) +
                       on_lane(plan->host_program, Opcode::kCopy, Lane::kHostOut));
  int64_t states = 0;
  for (const auto& [value, place] : plan->offloaded)
    if (place.tier == Tier::kDisk) states += plan->joint->values[static_cast<size_t>(value)].desc.bytes();
  EXPECT_GT(states, 0);
  EXPECT_GE(report.in[2].bytes, states);
  EXPECT_GE(report.out[2].bytes, states);
}

// A plan that keeps everything on the host tier has no such lanes.
TEST(HostProgram, NeedsNoLanesWhereNothingStreams) {
  const auto device = device::open("cpu", {.threads = 1});
  const auto plan = compile(layers(), *device, options_for(When::kAlways, 4 << 20));
  EXPECT_EQ(plan->host_ring_bytes, 0);
  for (const Instruction& i : plan->program().code) EXPECT_LE(i.lane, Lane::kHost);
}

}  // namespace
}  // namespace cairn::engine
