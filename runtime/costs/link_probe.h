// Measures a tier's link on a device: each direction alone and both at once.
#pragma once
#include "runtime/costs/table.h"
#include "runtime/device/device.h"

namespace cairn::costs {

// Takes two blocks of 128 MiB on the device and two on the tier, for the time of the call (about a second; a
// slow link takes longer), and copies in several sizes; a copy includes waking the lane and learning that it
// is done. Sizes end where one copy takes long. Errors as of
// Device::allocate and of the copies. Not at the same time as other work on the device.
LinkCost measure_link(device::Device& device, Tier tier);

}  // namespace cairn::costs
