// Updates by the host's processors, where optimizer state, weight and gradient live, beside a device whose kernels do not reach
// them: nothing but the gradient and the weight crosses the link, which micro-batches fetch and bring back anyway. What they use
// lives on the host tier as long as its room lasts, and else on the disk, from where it streams through a ring of the host tier
// (host_program). The next run begins with them, and its forward part fetches each weight behind its update; where updates are
// fused into backward, most run beside it instead, each behind the last copies of its gradient and its weight, and a run ends with the
// last of these. They take the processor's own kernels, which have the bits of the GPU's (same order of operations, each rounded alike).
#pragma once
#include <algorithm>
#include <set>
#include <vector>

#include "runtime/base/checked.h"
#include "runtime/compile/kernel_maker.h"

namespace cairn::engine {

// Bytes per second of the processors' memory that updates have, beside a device with memory of its own, or the model of one;
// 0: not known.
double host_memory_rate(const device::Device& device, const PlanOptions& options);

// Fills CompiledPlan::host_updated and what those updates are timed by: updates that the host may make are elementwise and not
// rounded at random, on the processor's kernels, and the host tier, with_disk the disk, too, has room for all that they use. Of
// all these `share` by bytes, evenly over the model, and last what its first op waits for: forward's weights, and what updates of the
// device stream beside backward, then cross the link all the time. False: there are none, or none that need the disk.
bool choose_host_updates(CompiledPlan& plan, const device::Device& device, const PlanOptions& options,
                         double share, bool with_disk);

// Of the parameters that it updates.
int64_t host_updated_bytes(const CompiledPlan& plan);

// What an update on the host writes and the device reads: the weight, then its packed form, if it has one. Ops may read
// one of the two alone.
std::vector<int32_t> made_on_host(const CompiledPlan& plan, const graph::JointOp& update);

// What an update on the host reads beside what it changes, a few numbers each, of which the host tier has a copy: hyper-parameters,
// and, beside backward, the scale of gradients and the sum of squares of its own.
std::vector<int32_t> host_scalars(const graph::JointOp& update);

// Their states, and weights that no op reads beside their packed forms, live on the host or on the disk from here on; other
// weights, packed forms and gradients follow with the homes, and have the host's room before states: they cross more often.
void keep_states_off_device(CompiledPlan& plan);

// Problem values that the plan's copies move and such an update uses: what it makes, and its gradient where it is not deferred.
std::vector<int32_t> copied_by_host_update(const CompiledPlan& plan, const graph::JointOp& update);

// Indices of the deferred update ops, in the order in which the plan's steps fetch their weights; or of the others, in that of the last
// copies of what they use.
std::vector<int32_t> host_update_order(const CompiledPlan& plan, bool deferred);

// Index of the plan's link to a tier; their number, if there is none.
inline size_t link_to(const CompiledPlan& plan, Tier tier) {
  return static_cast<size_t>(std::find(plan.link_tier.begin(), plan.link_tier.end(), tier) -
                             plan.link_tier.begin());
}
template <class Visit>
void each_on_host(const CompiledPlan& plan, const Visit& visit) {
  if (plan.host_updated.empty()) return;
  for (const graph::JointOp& update : plan.joint->ops(graph::kUpdate))
    if (plan.on_host(update)) visit(update);
}

}  // namespace cairn::engine
