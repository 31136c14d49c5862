// Updates by the host's processors, where optimizer state, weight and gradient live, beside a device whose kernels do not reach
// them: nothing but the gradient and the weight crosses the link, which micro-batches fetch and bring back anyway. The next run
// begins with them, and its forward part fetches each weight behind its update. They take the processor's own kernels, which
// have the bits of the GPU's (same order of operations, each rounded alike).
#pragma once
#include <set>
#include <vector>

#include "runtime/costs/model.h"
#include "runtime/engine/compile/kernel_maker.h"

namespace cairn::engine {

// Bytes per second of the processors' memory, beside a device with memory of its own, or the model of one; 0: not known.
double host_memory_rate(const device::Device& device, const PlanOptions& options);

// Weights whose updates the host may make: elementwise and not rounded at random, on the processor's kernels, where the host
// tier has room for all that they use. Of all these `share` by bytes, the last ones: the device updates the others meanwhile,
// which forward needs first.
std::set<int32_t> may_update_on_host(const CompiledPlan& plan, const device::Device& device, double share);

// What an update on the host writes and the device reads: the weight, then its packed form, if it has one. Ops may read
// one of the two alone.
std::vector<int32_t> made_on_host(const CompiledPlan& plan, const graph::JointOp& update);

// Their states live on the host from here on (CompiledPlan::host_updated), and weights that no op reads beside their packed
// forms; other weights, packed forms and gradients follow with the homes.
void keep_states_on_host(CompiledPlan& plan);

// Indices of update ops, in the order in which the plan's steps fetch their weights.
std::vector<int32_t> host_update_order(const CompiledPlan& plan);

// No step of a plan that updates these weights on the host is faster: all of the updates there and the copies of optimizer state
// for the device's, which share the host's memory; then for the weight that is last its copy to the device, the ops from its
// first use on, and the gradients that those bring back. 0: there are none.
double least_seconds_with_host_updates(const CompiledPlan& plan);
// All of them, with the copies of the weights, which use the same memory.
double host_seconds(const CompiledPlan& plan);
// What copies of the device's updates take of the host's memory, at its rate; of_state: of what lives there in every plan with
// these updates on the host.
double device_copies_seconds(const CompiledPlan& plan, double rate, bool of_state = false);
// By how much the plan is later because first copies of weights to the device wait for their updates, where a run begins with so
// many seconds of updates on the device. Below 0: by so much every weight is there before it is copied.
double host_wait_seconds(const CompiledPlan& plan, double device_seconds);
// The share of what the host may update that it does: as much as lets forward not wait for it, since the device and its links would
// take longer. Shares are tried one after the other, as all that a plan does depends on them.
class HostShare {
 public:
  explicit HostShare(double first) : share_(first) {}
  double now() const { return share_; }
  // Of the plan for the share now, whose step takes so long; nullptr: so little is not worth a plan. False: it is balanced, or
  // enough was tried.
  bool next(const CompiledPlan* plan, double step_seconds);

 private:
  double share_, last_share_ = 0, last_wait_ = 0;
  double low_ = 0, high_ = 1;  // the share is between
  int tried_ = 0;
};
// Seconds that the device's updates take less.
double device_update_seconds(const CompiledPlan& plan, const costs::Model& costs);

// CompiledPlan::host_kernels.
void make_host_kernels(CompiledPlan& plan, const device::Device& device);

}  // namespace cairn::engine
