// Gradients of plans for one micro-batch per update: values that come to life where backward writes them first, live through
// the norm and the update, and are dead during the next forward. Others persist, as micro-batches add to them.
#pragma once
#include "runtime/compile/program.h"

namespace cairn::engine {

// Makes every gradient that may be such a value one, and puts an op behind the problem that stands for what the norm and the
// update need on the device. Not where another program of the store, the next forward part or the host uses them.
void end_gradients(CompiledPlan& plan, const PlanOptions& options);

// The other way: all of them persist.
void let_gradients_persist(CompiledPlan& plan);

// Of those with a home: what stays on the device does so from backward to the last op only, which the caller puts behind the problem.
// False: none does.
bool let_gradients_end(CompiledPlan& plan);

// plan.plan is there: where the gradients lie behind it.
void settle_gradients(CompiledPlan& plan);

// The op that stands for what the programs around a micro-batch need on the device; the problem has ops.
plan::Op& op_between_steps(CompiledPlan& plan);

}  // namespace cairn::engine
