#include "runtime/compile/update/traffic.h"

#include <algorithm>
#include <limits>

#include "runtime/base/checked.h"
#include "runtime/compile/cost_query.h"
#include "runtime/compile/residency/homes.h"
#include "runtime/compile/update/streamed.h"
#include "runtime/plan/choices.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

double latencies(const plan::Link& link, int64_t bytes) {
  return static_cast<double>((bytes + kPieceBytes - 1) / kPieceBytes) * link.latency_seconds;
}
double in_seconds(const plan::Link& link, int64_t bytes) {
  return latencies(link, bytes) + static_cast<double>(bytes) / link.in_bytes_per_second;
}
double out_seconds(const plan::Link& link, int64_t bytes) {
  return latencies(link, bytes) + static_cast<double>(bytes) / link.out_bytes_per_second;
}
// Both directions slow each other down while both are busy.
double both_seconds(const plan::Link& link, int64_t in, int64_t out) {
  const double one = in_seconds(link, in), other = out_seconds(link, out);
  return std::min(one, other) / link.both_ways_factor + std::abs(one - other);
}
// Latencies are left out, as small neighbours share a copy.
double seconds(const plan::Link& link, const Crossing& crossing) {
  plan::Link at_once = link;
  at_once.latency_seconds = 0;
  return both_seconds(at_once, crossing.in, crossing.out) + in_seconds(at_once, crossing.before);
}

}  // namespace

std::map<int32_t, Crossing> update_crossings(const Lowered& plan) {
  const graph::JointGraph& joint = *plan.joint;
  std::map<int32_t, Crossing> crossings;
  const auto of = [&](int32_t value) -> Crossing* {
    const Where place = plan.where(value, Point::kDeviceUpdate);
    if (!place.streamed()) return nullptr;
    const auto link = std::find(plan.link_tier.begin(), plan.link_tier.end(), place.tier);
    Crossing& crossing = crossings[value];
    crossing.link = static_cast<int32_t>(link - plan.link_tier.begin());
    return &crossing;
  };
  for (const JointOp& norm : joint.ops(graph::kGradientNorm))
    if (Crossing* const gradient = joint.squares_in_backward ? nullptr : of(norm.in[0]))
      gradient->before += stored_bytes(joint, norm.in[0]);
  for (const JointOp& update : joint.ops(graph::kUpdate)) {
    if (plan.on_host(update)) continue;
    const int32_t weight = update.out[update_op::kParameter], gradient = update.in[update_op::kGrad];
    std::vector<int32_t> changed = {weight};
    const std::span<const int32_t> states = states_of(update);
    changed.insert(changed.end(), states.begin(), states.end());
    for (const int32_t v : changed)
      if (Crossing* const crossing = of(v)) crossing->in = crossing->out = stored_bytes(joint, v);
    if (Crossing* const crossing = of(gradient)) crossing->in = stored_bytes(joint, gradient);
    for (const int32_t i : derived_weights_of(joint, weight)) {
      const int32_t packed = joint.ops(graph::kRepack)[at(i)].out[0];
      if (Crossing* const crossing = of(packed)) crossing->out = stored_bytes(joint, packed);
    }
  }
  return crossings;
}

double streaming_seconds(const Lowered& plan, const costs::Model& costs) {
  std::vector<Crossing> all(plan.link_tier.size());
  for (const auto& [value, crossing] : update_crossings(plan)) {
    Crossing& sum = all[at(crossing.link)];
    sum.in += crossing.in;
    sum.out += crossing.out;
    sum.before += crossing.before;
  }
  // An update's copies overlap all of its kernels but the first and the last one. The norm's copies take longer than
  // its kernels.
  double copies = 0, ends = 0, before = 0;
  for (size_t link = 0; link < all.size(); ++link) {
    const plan::Link& l = plan.problem.links[link];
    before += in_seconds(l, all[link].before);
    const int64_t most = std::max(all[link].in, all[link].out);
    if (most == 0) continue;
    copies += both_seconds(l, all[link].in, all[link].out);
    const auto piece = static_cast<double>(std::max(std::min(most, kPieceBytes), least_ring_bytes(plan)));
    ends = std::max(ends,
                    2 * l.latency_seconds + piece / l.in_bytes_per_second + piece / l.out_bytes_per_second);
  }
  if (copies == 0) return before;
  double kernels = 0;
  for (const JointOp& update : plan.joint->ops(graph::kUpdate))
    if (!plan.on_host(update)) kernels += costs.seconds(query_of(*plan.joint, update)).seconds;
  return before + ends + std::max(0.0, copies - kernels);
}

bool squares_pay(const Lowered& plan, const costs::Model& costs, int64_t micro_steps) {
  const std::vector<JointOp>& norm = plan.joint->ops(graph::kGradientNorm);
  if (norm.empty() || plan.joint->grad_scale >= 0 || plan.reaches(plan.link_tier[0])) return false;
  double squares = 0, copies = 0;
  for (const JointOp& op : norm) {
    squares += costs.seconds(query_of(*plan.joint, op)).seconds;
    copies +=
        static_cast<double>(stored_bytes(*plan.joint, op.in[0])) / plan.problem.links[0].in_bytes_per_second;
  }
  return squares * static_cast<double>(micro_steps) < copies;
}

bool may_defer(const Lowered& plan, const PlanOptions& options) {
  const std::vector<JointOp>& updates = plan.joint->ops(graph::kUpdate);
  return options.forced.defer_updates != ForcedChoices::When::kNever && options.micro_steps <= 1 &&
         !updates.empty() && plan.joint->grad_scale < 0 && plan.joint->slices.empty() &&
         !plan.joint->averages() &&  // which move when a step ends

         !plan.problem.links.empty() && !plan.reaches(plan.link_tier[0]) &&
         (plan.layout == nullptr || plan.layout->plans == 1) &&
         std::none_of(updates.begin(), updates.end(),
                      [](const JointOp& update) { return update.attrs.has("rng"); });
}

Lowered with_seconds_shared_out(Lowered plan, double total) {
  const std::map<int32_t, Crossing> crossings = update_crossings(plan);
  std::vector<double> own(plan.problem.values.size(), 0);
  double all = 0;
  const auto give = [&](int32_t value, double share) {
    const int32_t stored = plan.problem_value[at(value)];
    if (stored < 0 || plan.problem.values[at(stored)].home < 0) return;
    own[at(stored)] += share;
    all += share;
  };
  for (const auto& [value, crossing] : crossings) {
    const double share = seconds(plan.problem.links[at(crossing.link)], crossing);
    const graph::Slices* const slices = plan.joint->slices_of(value);
    if (slices == nullptr) {
      give(value, share);
      continue;
    }
    const auto whole = static_cast<double>(stored_bytes(*plan.joint, value));
    for (const int32_t part : slices->parts)
      give(part, share * static_cast<double>(stored_bytes(*plan.joint, part)) / whole);
  }
  if (all == 0) return plan;
  for (size_t v = 0; v < own.size(); ++v)
    if (plan.problem.values[v].home >= 0) plan.problem.values[v].home_seconds = total * own[v] / all;
  return plan;
}

bool offloaded_state_may_pay(const Lowered& plan, const costs::Model& costs, int64_t micro_steps,
                             double limit) {
  if (!plan.offloaded.empty()) return true;
  const auto steps = static_cast<double>(micro_steps);
  plan::Leaving leaving{0, std::numeric_limits<double>::infinity(), 0};
  constexpr int64_t kMany = int64_t{1} << 40;
  for (const plan::Link& link : plan.problem.links)
    leaving.seconds_per_byte =
        std::min(leaving.seconds_per_byte, seconds(link, {0, kMany, kMany, 0}) / (kMany * steps));
  for (const JointOp& update : plan.joint->ops(graph::kUpdate)) {
    const int32_t weight = update.out[update_op::kParameter];
    leaving.bytes += state_bytes(*plan.joint, update);
    if (!derived_weights_of(*plan.joint, weight).empty()) leaving.bytes += stored_bytes(*plan.joint, weight);
    leaving.hidden += costs.seconds(query_of(*plan.joint, update)).seconds / steps;
  }
  return plan::may_take_less(plan.problem, leaving, limit - plan.update_seconds / steps);
}

double round_trip_seconds(const plan::Link& link, int64_t bytes) { return both_seconds(link, bytes, bytes); }

}  // namespace cairn::engine
