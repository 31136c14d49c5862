// From the spans of a traced run to costs.
#pragma once
#include <string>

#include "runtime/costs/recorder.h"
#include "runtime/exec/session.h"

namespace cairn::engine {

// How long a step around the run took, as the host measured it. 0: not known, and nothing is recorded of it.
struct StepSeconds {
  double step = 0;       // the whole step, of one micro-batch
  double optimizer = 0;  // of it: norm and update, which makes packed weights
};

// Adds the session's last traced run: seconds of every op, seconds between ops, and what is left of the step
// when the optimizer and the time from the first op's begin to the last one's end are taken away (packed
// weights that an update would have made left out): the host's share. kWrongState: there is none.
void record_run(costs::Recorder& recorder, const Session& session, const StepSeconds& seconds);

// Name of an op or, for a copy, of the value it moves; borrowed from the plan.
const std::string& span_name(const CompiledPlan& plan, const Span& span);
// Tier at the other end of a copy; the device for an op.
Tier span_tier(const CompiledPlan& plan, const Span& span);

}  // namespace cairn::engine
