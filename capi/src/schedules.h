// Schedules as a host gives them.
#pragma once
#include "capi/src/structs.h"
#include "runtime/step/schedule.h"

namespace cairn::capi {

// Rates, warm-up and schedules of a stepper's options, checked.
step::Schedule read_schedule(const cairn_stepper_options_t& options);

}  // namespace cairn::capi
