// Rates of a device's links as a step's copies see them: pinned blocks, the copy queues, timed by the device.
#pragma once
#include "runtime/device/device.h"

namespace cairn::bench {

struct LinkRate {
  Tier tier;
  bool outwards, both;  // both: the other direction runs, too
  int64_t bytes;        // of one copy
  double bytes_per_second;
};

// Each direction alone, then both at once, for each size. kIo: the disk.
std::vector<LinkRate> link_rates(device::Device& device, Tier tier, const std::vector<int64_t>& sizes);

}  // namespace cairn::bench
