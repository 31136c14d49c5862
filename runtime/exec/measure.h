// Turns the spans of a traced run into costs.
#pragma once
#include <string>

#include "runtime/costs/recorder.h"
#include "runtime/exec/session.h"

namespace cairn::engine {

// Seconds of the step with the traced run, as the host measured them. 0: not known, and not recorded.
struct StepSeconds {
  double step = 0;       // the step, of one micro-batch
  double optimizer = 0;  // of these, norm and update, which packs weights
};

// Adds the session's last traced run: the seconds of every op, the seconds between ops, and the host's share, which
// is the step without the optimizer and without the time between the first op's begin and the last op's end.
// Packing that an update would have done does not count. kWrongState: no run was traced.
void record_run(costs::Recorder& recorder, const Session& session, const StepSeconds& seconds);

// The name of an op or, for a copy, of the value that it moves. It belongs to the plan.
const std::string& span_name(const CompiledPlan& plan, const Span& span);
// The tier at the far end of a copy; the device for an op.
Tier span_tier(const CompiledPlan& plan, const Span& span);

}  // namespace cairn::engine
