// Updates by the host's processors, for a device whose kernels do not reach the host tier. Optimizer state, weight
// and gradient live on the host. Only the gradient and the weight cross the link, which micro-batches move anyway.
// Where the host tier is full, values live on the disk and stream through a ring of the host tier (host_program). The
// next run begins with these updates, and its forward fetches each weight after its update. Where updates are fused
// into backward, most run concurrently with it instead, each after the last copies of its gradient and its weight.
// The processor's kernels compute the same bits as the GPU's: the same operations in the same order, each rounded
// alike.
#pragma once
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/checked.h"
#include "runtime/compile/kernel_maker.h"

namespace cairn::engine {

// Bytes per second of the host's memory that updates can use, on a host whose device has its own memory or is a model
// of one; 0: not known.
double host_memory_rate(const device::Device& device, const PlanOptions& options);

// Chooses Lowered::host_updated, with what times these updates. The host may make an update that is elementwise, is
// not rounded at random and has a kernel of the processor; the host tier, with_disk the disk as well, needs room
// for all that it uses. Of all these, `share` by bytes is chosen, spread evenly over the model, so that the link is
// busy all the time; the weights of the first op come last. Nothing: there are none, or none that need the disk.
std::optional<Lowered> with_host_updates(Lowered plan, const device::Device& device,
                                         const PlanOptions& options, double share, bool with_disk);

// Bytes of the parameters that the host updates.
int64_t host_updated_bytes(const Lowered& plan);

// The values that an update on the host writes and the device fetches: the weight, then its packed form, if it has
// one. Ops may read only one of the two.
std::vector<int32_t> made_on_host(const Lowered& plan, const graph::JointOp& update);

// The numbers that an update on the host reads, of which the host tier has copies: hyper-parameters; concurrently
// with backward also the scale of gradients and the sum of squares of its own gradient.
std::vector<int32_t> host_scalars(const graph::JointOp& update);

// The states of these updates, and weights of which ops read the packed form only, live on the host or the disk
// from here on. Other weights, packed forms and gradients follow with with_residencies(), and have the host's room
// first, as they cross the link more often.
Lowered with_states_on_host(Lowered plan);

// The problem values that both the plan's copies and such an update use: what it makes, and its gradient unless it
// is deferred.
std::vector<int32_t> copied_by_host_update(const Lowered& plan, const graph::JointOp& update);

// The deferred updates as indices of their phase, in the order in which the plan fetches their weights; or the
// others, in the order of the last copies of what they use.
std::vector<int32_t> host_update_order(const Planned& plan, bool deferred);

// The index of the plan's link to a tier; the number of links, if there is none.
inline size_t link_to(const Lowered& plan, Tier tier) {
  return static_cast<size_t>(std::find(plan.link_tier.begin(), plan.link_tier.end(), tier) -
                             plan.link_tier.begin());
}
template <class Visit>
void each_on_host(const Lowered& plan, const Visit& visit) {
  if (plan.host_updated.empty()) return;
  for (const graph::JointOp& update : plan.joint->ops(graph::kUpdate))
    if (plan.on_host(update)) visit(update);
}

}  // namespace cairn::engine
