// Gradients summed by the host's processors, for a device that does not let its kernels reach the host tier. With
// several micro-batches per update, each one sends its own gradient, and no gradient is fetched to be added to: the
// link carries as much per micro-batch as with one micro-batch per update. The first micro-batch of a step writes the
// gradient where it is stored. What later ones send waits in a ring of the host tier until the host's lane adds it.
// Only gradients that one op makes in one piece: the host then adds what the device would add, with the same
// rounding. (A GPU's library may split a product's sum and add to the gradient part by part. Its last bits may then
// differ from those of a plan that adds on the device.)
#pragma once
#include "runtime/base/checked.h"
#include "runtime/compile/kernel_maker.h"

namespace cairn::engine {

struct WithHostAdds {
  Lowered plan;
  size_t chosen = 0, all = 0;  // gradients, of all that the host could sum
};
// Chooses Lowered::host_added, before residencies are given: gradients in the order in which backward makes them,
// as long as the host ends with backward. A micro-batch is taken to last `stretch` times as long as its ops. With
// When::kAlways: all that may be.
WithHostAdds with_host_adds(Lowered plan, const device::Device& device, const PlanOptions& options,
                            double stretch);

// Seconds by which a later micro-batch takes longer than planned because the last sum ends after it.
double host_add_wait_seconds(const Planned& plan);

// Lowered::host_added, with its kernels.
std::map<int32_t, HostAdd> host_adds_with_kernels(const Lowered& plan, KernelMaker& maker);

}  // namespace cairn::engine
