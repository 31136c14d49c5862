// Sums of gradients by the host's processors, where the gradient lives, beside a device whose kernels do not reach it: of
// several micro-batches per update, each sends its own gradient, and nothing comes back to be added to. The first one of a step
// writes it where the gradient lives; what later ones send waits in a ring of the host tier for the host's lane, which adds it. So the link
// carries what it does with one micro-batch per update. Only gradients that one op makes, in one piece: the host then adds what the
// device would add, with the same rounding. (A GPU's library may split a product's sum and add to the gradient part by
// part: its last bits may then differ from those of a plan that adds on the device.)
#pragma once
#include "runtime/base/checked.h"
#include "runtime/compile/kernel_maker.h"

namespace cairn::engine {

struct HostAddCount {
  size_t chosen = 0, all = 0;  // of all that the host could add to
};
// Fills CompiledPlan::host_added, before homes are given: gradients in the order in which backward makes them, as long as the host
// ends with backward. A micro-batch is taken to be `stretch` times as long as its ops. With Defer::kAlways all that may be.
HostAddCount choose_host_adds(CompiledPlan& plan, const device::Device& device, const PlanOptions& options,
                              double stretch);

// Seconds by which a later micro-batch is longer than the plan because the last sum ends behind it.
double host_add_wait_seconds(const CompiledPlan& plan);

// CompiledPlan::HostAdd's kernels.
void make_host_adds(CompiledPlan& plan, KernelMaker& maker);

}  // namespace cairn::engine
