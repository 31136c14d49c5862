// Measures a tier's link on a device: each direction alone and both at once.
#pragma once
#include "runtime/costs/table.h"
#include "runtime/device/device.h"

namespace cairn::costs {

// How much of it: the size of a block, which no cache holds when much is wanted, and how often each is repeated.
struct ProbeEffort {
  int64_t block_bytes = int64_t{128} << 20;
  int repeats = 7;
};

// Takes two blocks on the device and two on the tier, for the time of the call (about a second; a slow link takes
// longer), and copies in several sizes; a copy includes waking the lane and learning that it is done. Sizes end
// where one copy takes long, and a host link throttled to less than 1 MiB a second is refused. Where the host's
// processors are the device's, also copies while kernels run, and how much each slows the other. Errors as of
// Device::allocate and of the copies. Not at the same time as other work on the device.
LinkCost measure_link(device::Device& device, Tier tier, const ProbeEffort& effort = {});

}  // namespace cairn::costs
