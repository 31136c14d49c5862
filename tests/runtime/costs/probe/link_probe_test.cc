#include "runtime/costs/probe/link_probe.h"

#include <gtest/gtest.h>

namespace cairn::costs {
namespace {

TEST(LinkProbe, MeasuresAndGivesTheMemoryBack) {
  const auto device = device::open("cpu", {.link_bytes_per_second = 4e9});
  for (const Tier tier : {Tier::kHost, Tier::kDisk}) {
    const LinkCost cost = measure_link(*device, tier);
    EXPECT_EQ(cost.link.tier, kTierNames[static_cast<size_t>(tier)]);
    EXPECT_GT(cost.link.out_bytes_per_second, 0);
    EXPECT_GT(cost.link.in_bytes_per_second, 0);
    EXPECT_GE(cost.link.latency_seconds, 0);
    EXPECT_GT(cost.link.both_ways_factor, 0);
    EXPECT_LE(cost.link.both_ways_factor, 1);
    EXPECT_EQ(cost.stated_bytes_per_second, tier == Tier::kHost ? 4e9 : 0);
    EXPECT_EQ(device->ledger().count(tier).reserved_bytes, 0);
  }
  EXPECT_EQ(device->ledger().count(Tier::kDevice).reserved_bytes, 0);
}

// A block of 128 MiB would take half a minute each way.
TEST(LinkProbe, ASlowLinkIsMeasuredByLessThanABlock) {
  const auto device = device::open("cpu", {.link_bytes_per_second = 4 << 20});
  const LinkCost cost = measure_link(*device, Tier::kHost, {.repeats = 1});
  EXPECT_LT(cost.link.out_bytes_per_second, 8 << 20);
  EXPECT_LT(cost.link.in_bytes_per_second, 8 << 20);
}

TEST(LinkProbe, ALinkThatWouldTakeHoursIsRefused) {
  const auto device = device::open("cpu", {.link_bytes_per_second = 8});
  try {
    measure_link(*device, Tier::kHost);
    ADD_FAILURE() << "measured";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("throttled to 8 bytes per second"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(device->ledger().count(Tier::kDevice).reserved_bytes, 0);
}

TEST(LinkProbe, TheDeviceHasNoLinkToItself) {
  const auto device = device::open("cpu", {});
  EXPECT_THROW(measure_link(*device, Tier::kDevice), Error);
}

}  // namespace
}  // namespace cairn::costs
