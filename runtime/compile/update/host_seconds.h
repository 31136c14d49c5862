// The seconds of updates by the host's processors.
//
// The host makes one update after the other. Each takes as long as its bytes take through the host's memory, or
// from the disk and back, whichever is longer: reads, kernels and writes of different pieces overlap. The copy of
// an updated value to the device counts with its update. That copies to the host and to the disk cross the same bus
// of the device is left out: a plan's links do not know it.
#pragma once
#include "runtime/compile/stages.h"
#include "runtime/costs/model.h"

namespace cairn::engine {

// A bound: no step that updates these weights on the host is faster. It counts all updates there and the copies of
// the device's, which share the host's memory and the disk; then, of the last weight, its copy, the ops from its
// first use on and the gradients that they send back. Concurrently with backward: all updates. 0: there are none.
double least_seconds_with_host_updates(const Lowered& plan);
// By op of the problem: it does not begin earlier than so many seconds after these updates begin, as weights that
// it or earlier ops use are not updated yet. Zeros where updates are fused: which of them precede a run is known
// only with a plan.
std::vector<double> earliest_with_host_updates(const Lowered& plan);
// Seconds of all of them, with the copies of the weights.
double host_seconds(const Lowered& plan);
// By how much a run takes longer than planned, as copies of weights wait for their updates. The run begins with
// device_seconds of updates on the device. Below 0: so long before its copy every weight is ready. Where updates
// are fused, the run may also have to wait for the last update at its end.
double host_wait_seconds(const Planned& plan, double device_seconds);
// Where updates are fused: seconds of a run in which the host makes none. Else 0.
double host_rest_seconds(const Planned& plan);
// Lowered::host_deferred, where updates are fused: as many as make host_wait_seconds() the least.
std::set<int32_t> choose_deferred(const Planned& plan);
// Seconds that the device's own updates are shorter for it.
double device_update_seconds(const Lowered& plan, const costs::Model& costs);
// Seconds of waiting that would be saved if the device made all these updates: the seconds of the updates, and the
// part of their copies that would not use the host's memory or disk.
double wait_saved_on_device(const Lowered& plan);

}  // namespace cairn::engine
