#include "runtime/plan/evaluate.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace cairn::plan {
namespace {

constexpr double kRounding = 1e-9;    // of sums in another order
constexpr int64_t kScheduleWork = 3;  // a run on the lanes takes about so much longer than one without

uint64_t hash_of(const Sequence& sequence) {
  uint64_t hash = sequence.ops.size();
  const auto add = [&](uint64_t x) { hash = (hash ^ x) * 0x9e3779b97f4a7c15; };
  for (const int32_t op : sequence.ops) add(static_cast<uint64_t>(op));
  for (const Residency& s : sequence.residencies)
    add(static_cast<uint64_t>(s.value) << 42 ^ static_cast<uint64_t>(s.begin) << 21 ^
        static_cast<uint64_t>(s.end));
  return hash;
}

}  // namespace

Cost Evaluator::operator()(const RetentionPoints& t, Pace pace, Sequence& sequence, double max_seconds) {
  if (!sequencer_.run(t, sequence, {max_items(), max_seconds * (1 + kRounding)})) return {};
  const bool copies = std::any_of(sequence.residencies.begin(), sequence.residencies.end(),
                                  [](const Residency& residency) { return residency.to >= 0; });
  if (!copies) return {true, sequence.seconds, sequence.peak_bytes, hash_of(sequence)};
  scheduled_ += kScheduleWork * static_cast<int64_t>(sequence.ops.size());
  const Schedule s = make_schedule(p_, index_, sequence, pace, false);
  return {true, s.seconds, s.peak_bytes, hash_of(sequence)};
}

Schedule Evaluator::schedule(const RetentionPoints& t, Pace pace, Sequence& sequence) {
  require(sequencer_.run(t, sequence, {max_items()}), Code::kInternal,
          "a plan that was priced cannot be made");
  scheduled_ += kScheduleWork * static_cast<int64_t>(sequence.ops.size());
  return make_schedule(p_, index_, sequence, pace);
}

}  // namespace cairn::plan
