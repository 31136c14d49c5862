// Measures which of several ways to compute an op is the fastest on this device, and keeps it in a profile.
#pragma once
#include "runtime/compile/compile.h"
#include "runtime/costs/table.h"

namespace cairn::engine {

// Times all ways to compute the plan's ops, on operands of their shapes. A way that is clearly faster than the
// backend's own choice goes into the profile and replaces what was there for the op. The call takes the memory of
// one op's operands at a time; ops for which there is none keep the backend's choice. Returns how many ops were
// timed, 0 where the backend has no choices. Nothing else should run on the device.
int64_t measure_kernels(costs::Profile& profile, const CompiledPlan& plan, device::Device& device);

}  // namespace cairn::engine
