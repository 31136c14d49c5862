// Measures the rates of the processor or GPU at hand.
#pragma once
#include <optional>

#include "runtime/costs/rates.h"
#include "runtime/device/device.h"

namespace cairn::engine {

inline constexpr double kMostWaiting = 0.2, kAnyWaiting = 1e9;

// Nothing, if others' work on the processors kept ours waiting: what is measured then says nothing of quieter times.
// On a device of its own with the same kernels and as many threads, so that the caller's ledger, allocator and
// throttle know nothing of it. Trains a few steps of small models, in float32 and in bfloat16, and copies, on a processor
// beside products; takes less than a second and some 300 MB, but for processors that compute below 20 GFLOP/s. A GPU
// takes about three seconds and up to 2 GB: sizes that it has no memory for are left out, and
// so is its link where no memory can be pinned. kOutOfMemory, of a processor: all is as before.
// most_waiting: of the time that measuring takes, what the threads of this process together may have waited for a
// processor.
std::optional<costs::Rates> measure_rates(const device::DeviceInfo& info, double most_waiting = kMostWaiting);

}  // namespace cairn::engine
