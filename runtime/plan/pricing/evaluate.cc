#include "runtime/plan/pricing/evaluate.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace cairn::plan {
namespace {

constexpr double kOrderRounding = 1e-9;  // of sums that are added in another order
constexpr int64_t kScheduleWork = 3;     // a simulation with copies takes about so many times one without

uint64_t hash_of(const Sequence& sequence) {
  uint64_t hash = sequence.ops.size();
  const auto add = [&](uint64_t x) { hash = (hash ^ x) * 0x9e3779b97f4a7c15; };
  for (const int32_t op : sequence.ops) add(static_cast<uint64_t>(op));
  for (const Residency& s : sequence.residencies)
    add(static_cast<uint64_t>(s.value) << 42 ^ static_cast<uint64_t>(s.begin) << 21 ^
        static_cast<uint64_t>(s.end));
  return hash;
}

bool has_copies(const Sequence& sequence) {
  return std::any_of(sequence.residencies.begin(), sequence.residencies.end(),
                     [](const Residency& residency) { return residency.to >= 0; });
}

}  // namespace

Cost Evaluator::operator()(const RetentionPoints& t, Pace pace, Sequence& sequence, double max_seconds) {
  const int64_t before = sequencer_.work();
  const bool valid = sequencer_.run(t, sequence, {max_items(), max_seconds * (1 + kOrderRounding)});
  work_ += sequencer_.work() - before;
  if (!valid) return {};
  if (has_copies(sequence)) work_ += kScheduleWork * static_cast<int64_t>(sequence.ops.size());
  return cost_of(sequence, pace);
}

Cost Evaluator::cost_of(const Sequence& sequence, Pace pace) const {
  if (!has_copies(sequence)) return {true, sequence.seconds, sequence.peak_bytes, hash_of(sequence)};
  const Schedule s = make_schedule(p_, index_, sequence, pace, false);
  return {true, s.seconds, s.peak_bytes, hash_of(sequence)};
}

RetentionPricer::Price Evaluator::price(const RetentionPoints& t, double max_seconds) {
  const RetentionPricer::Price price = pricer_(t, {max_items(), max_seconds * (1 + kOrderRounding)});
  work_ += price.work;
  if (price.valid && price.copies) work_ += kScheduleWork * price.work;
  return price;
}

Cost Evaluator::after_price(const RetentionPoints& t, Pace pace, Sequence& sequence) {
  require(sequencer_.run(t, sequence, {max_items()}), Code::kInternal,
          "retention points that were priced are no plan");
  return cost_of(sequence, pace);
}

const std::vector<int32_t>& Evaluator::trace_of(const RetentionPoints& t) {
  pricer_(t, {max_items()});
  return pricer_.trace();
}

Schedule Evaluator::schedule(const RetentionPoints& t, Pace pace, Sequence& sequence) {
  const int64_t before = sequencer_.work();
  require(sequencer_.run(t, sequence, {max_items()}), Code::kInternal,
          "a plan that was priced cannot be made");
  work_ += sequencer_.work() - before;
  work_ += kScheduleWork * static_cast<int64_t>(sequence.ops.size());
  return make_schedule(p_, index_, sequence, pace);
}

}  // namespace cairn::plan
