#include "runtime/plan/evaluate.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace cairn::plan {
namespace {

constexpr double kRounding = 1e-9;    // of sums in another order
constexpr int64_t kScheduleWork = 3;  // a run on the lanes takes about so much longer than one without

}  // namespace

Cost Evaluator::operator()(const Thresholds& t, Pace pace, Sequence& sequence, double most_seconds) {
  if (!sequencer_.run(t, sequence, {most_items(), most_seconds * (1 + kRounding)})) return {};
  const bool copies = std::any_of(sequence.stays.begin(), sequence.stays.end(),
                                  [](const Stay& stay) { return stay.to >= 0; });
  if (!copies) return {true, sequence.seconds, sequence.peak_bytes};
  scheduled_ += kScheduleWork * static_cast<int64_t>(sequence.ops.size());
  const Schedule s = make_schedule(p_, index_, sequence, pace, false);
  return {true, s.seconds, s.peak_bytes};
}

Schedule Evaluator::schedule(const Thresholds& t, Pace pace, Sequence& sequence) {
  require(sequencer_.run(t, sequence, {most_items()}), Code::kInternal,
          "a plan that was priced cannot be made");
  scheduled_ += kScheduleWork * static_cast<int64_t>(sequence.ops.size());
  return make_schedule(p_, index_, sequence, pace);
}

}  // namespace cairn::plan
