// Which of several ways to compute an op is the fastest on this device: measured once, kept in the profile.
#pragma once
#include "runtime/compile/program.h"
#include "runtime/costs/table.h"

namespace cairn::engine {

// Times what the kernels of the plan's ops have to choose from, on operands of their shapes, and puts what is
// clearly faster than the backend's own choice into the profile, in the place of what was there for the same
// op. Takes the memory of one op's operands for the time of the call; ops for which there is none keep the
// backend's choice. Returns how many ops were timed: 0 where the backend has no choices. Nothing else should
// run on the device.
int64_t measure_kernels(costs::Profile& profile, const CompiledPlan& plan, device::Device& device);

}  // namespace cairn::engine
