// What updates by the host's processors take.
//
// The host makes one update after the other. Each takes as long as its bytes take through the host's memory, or from the disk
// and to it, whichever is more: reads, kernels and writes of different pieces overlap. What a copy to the device of what was
// updated moves is counted with it. Copies over both a host and a disk link cross the same bus of the device, which the links of
// a plan do not know.
#pragma once
#include "runtime/compile/program.h"
#include "runtime/costs/model.h"

namespace cairn::engine {

// No step of a plan that updates these weights on the host is faster: all of the updates there and the copies for the device's,
// which share the host's memory and the disk; then for the weight that is last its copy to the device, the ops from its first use
// on, and the gradients that those bring back. Beside backward: all of the updates. 0: there are none.
double least_seconds_with_host_updates(const CompiledPlan& plan);
// Per op of the problem, seconds from the beginning of those updates on before which it does not begin: weights that it or ops before
// it use are not updated yet. Zeros where updates are fused, as which of them go before a run is not known before there is a plan.
std::vector<double> earliest_with_host_updates(const CompiledPlan& plan);
// All of them, with the copies of the weights.
double host_seconds(const CompiledPlan& plan);
// By how much the plan is later because first copies of weights to the device wait for their updates, where a run begins with so
// many seconds of updates on the device. Below 0: by so much every weight is there before it is copied. Where updates are fused, runs
// end later, too, if the last update ends behind all else.
double host_wait_seconds(const CompiledPlan& plan, double device_seconds);
// Of a run, where updates are fused: for so long the host makes none. Else 0.
double host_rest_seconds(const CompiledPlan& plan);
// Where updates are fused: so many of those on the host are deferred that this is least.
void choose_deferred(CompiledPlan& plan);
// Seconds that the device's updates take less.
double device_update_seconds(const CompiledPlan& plan, const costs::Model& costs);
// Seconds of waiting that there would be less, were all updates on the host made by the device: what they take here, and what
// copies for them would take there, but that those use the host's memory and the disk as well.
double wait_saved_on_device(const CompiledPlan& plan);

}  // namespace cairn::engine
