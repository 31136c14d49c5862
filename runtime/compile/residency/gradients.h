// Gradients of plans for one micro-batch per update. They come to life where backward writes them first, live until
// norm and update are done, and take no memory in the next forward. Other gradients persist, as micro-batches add
// to them.
#pragma once
#include "runtime/compile/stages.h"

namespace cairn::engine {

// Every gradient that can, ends with the step: the problem gets a last op that reads them and stands for what norm
// and update need on the device. Not where another program of the store, the next forward or the host uses
// gradients.
Lowered end_gradients(Lowered plan, const PlanOptions& options);

// The other way round: all gradients persist.
Lowered let_gradients_persist(Lowered plan);

// Of gradients that may live in a tier: those kept on the device are there only from backward to the last op. The
// caller appends that op to the problem where Lowered::gradients_end says so.
Lowered end_resident_gradients(Lowered plan);

// Where the gradients that end lie after the plan's last step, by problem value.
std::map<int32_t, int64_t> gradient_offsets(const Planned& plan);

}  // namespace cairn::engine
