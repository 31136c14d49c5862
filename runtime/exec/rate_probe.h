// Measures the rates of the processor or GPU at hand.
#pragma once
#include <optional>

#include "runtime/costs/rates.h"
#include "runtime/device/device.h"

namespace cairn::engine {

inline constexpr double kMostWaiting = 0.2, kAnyWaiting = 1e9;

// Trains a few steps of small models, in float32 and in bfloat16, and copies; on a processor, copies also run
// concurrently with products. It opens a device of its own with the same kernels and threads, which the caller's
// ledger, allocator and throttle do not see. A processor takes less than a second and some 300 MB, unless it
// computes below 20 GFLOP/s. A GPU takes about three seconds and up to 2 GB: sizes that it has no memory for are
// left out, and so is its link where no memory can be pinned. kOutOfMemory, of a processor: all is as before.
// Nothing: other programs kept ours waiting for more than most_waiting of the time, summed over its threads; what
// was measured then says nothing of quieter times.
std::optional<costs::Rates> measure_rates(const device::DeviceInfo& info, double most_waiting = kMostWaiting);

}  // namespace cairn::engine
