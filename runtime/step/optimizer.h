// Hyper-parameters of an update, as its kernels read them. Internal to runtime/step.
#pragma once
#include "runtime/engine/session.h"
#include "runtime/step/stepper.h"

namespace cairn::step {

// For one AdamW update with gradients multiplied by `factor`; t counts from 1.
void write_hyper(engine::Session& session, const Options& options, double rate, uint64_t t, double factor);

}  // namespace cairn::step
