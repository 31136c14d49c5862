#include "runtime/engine/compile/update/host_updates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/registry.h"
#include "runtime/base/checked.h"
#include "runtime/costs/probe/host_memory.h"
#include "runtime/engine/compile/cost_query.h"
#include "runtime/engine/compile/update/streamed.h"
#include "runtime/engine/compile/update/traffic.h"
#include "runtime/plan/homes/traffic.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

constexpr double kBalanced =
    0.01;  // of a step, that host and device wait for each other at most; of shares, that differ
constexpr int kMostShares = 4;
constexpr double kFromEdge = 0.1;  // of what a share is between, that the next one keeps off

size_t host_link(const CompiledPlan& plan) {
  return at(std::find(plan.link_tier.begin(), plan.link_tier.end(), Tier::kHost) - plan.link_tier.begin());
}

// By problem value: an op of the micro-batch uses it.
std::vector<bool> used_values(const plan::Problem& problem) {
  std::vector<bool> used(problem.values.size());
  for (const plan::Op& op : problem.ops)
    for (const auto* list : {&op.inputs, &op.outputs})
      for (const int32_t v : *list) used[at(v)] = true;
  return used;
}

// The weight's packed form, which its update writes; -1: it has none, or not one alone that is a copy.
int32_t packed_copy(const CompiledPlan& plan, const JointOp& update) {
  const std::vector<int32_t> all = packed_weights_of(*plan.joint, update.out[update_op::kParameter]);
  return all.size() == 1 && plan.registry->packed_is_copy ? plan.joint->ops(graph::kRepack)[at(all[0])].out[0]
                                                          : -1;
}

// nullptr: there is none, or it needs memory of its own.
std::unique_ptr<kernels::Kernel> host_kernel(const CompiledPlan& plan, const JointOp& update, int threads) {
  Operands operands(*plan.joint, update);
  if (const int32_t packed = packed_copy(plan, update); packed >= 0) {
    operands.out[update_op::kPacked] = plan.joint->values[at(packed)].desc;
    operands.out_present |= 1u << update_op::kPacked;
  }
  std::unique_ptr<kernels::Kernel> kernel =
      kernels::cpu_registry().find(signature_of(update, operands, threads));
  if (kernel != nullptr && kernel->workspace_bytes() > 0) kernel = nullptr;
  return kernel;
}

int64_t whole_pages(const graph::JointGraph& joint, int32_t value) {
  return align_up(stored_bytes(joint, value), kPageBytes);
}

// Of one update on the host; 0 where its memory's rate is not known.
double seconds_of(const CompiledPlan& plan, const JointOp& update, double copied) {
  const double rate = plan.host_memory_bytes_per_second;
  const int32_t packed = packed_copy(plan, update);
  const double bytes = query_of(*plan.joint, update).work.bytes +
                       (packed < 0 ? 0 : static_cast<double>(stored_bytes(*plan.joint, packed)));
  return rate > 0 ? (bytes + copied) / rate : 0;
}

// With the copies to the device of what it makes, which use the same memory.
double seconds_beside_copy(const CompiledPlan& plan, const JointOp& update) {
  double copied = 0;
  for (const int32_t v : made_on_host(plan, update))
    if (plan.problem_value[at(v)] >= 0) copied += static_cast<double>(stored_bytes(*plan.joint, v));
  return seconds_of(plan, update, copied);
}

template <class Visit>
void each_on_host(const CompiledPlan& plan, const Visit& visit) {
  if (plan.host_updated.empty()) return;
  for (const JointOp& update : plan.joint->ops(graph::kUpdate))
    if (plan.on_host(update)) visit(update);
}

// Seconds of waiting that there would be less, were all of these updates made by the device: what they take here, and what copies
// for them would take there, but that those use the host's memory as well.
double wait_saved_on_device(const CompiledPlan& plan) {
  const plan::Link& link = plan.problem.links[host_link(plan)];
  double in = 0, out = 0;
  each_on_host(plan, [&](const JointOp& update) {
    const int32_t weight = update.out[update_op::kParameter], gradient = update.in[update_op::kGrad];
    const auto changed =
        static_cast<double>(stored_bytes(*plan.joint, weight) + state_bytes(*plan.joint, update));
    in += changed + static_cast<double>(stored_bytes(*plan.joint, gradient));
    out += changed;
  });
  const double on_device = plan::seconds_of_both(in / link.in_bytes_per_second,
                                                 out / link.out_bytes_per_second, link.both_ways_factor);
  const double rate = plan.host_memory_bytes_per_second;
  return host_seconds(plan) + std::max(0.0, on_device - (rate > 0 ? (in + out) / rate : 0));
}

}  // namespace

double host_memory_rate(const device::Device& device, const PlanOptions& options) {
  if (options.costs != nullptr && options.costs->model)
    return options.costs->model->host_memory_bytes_per_second;
  if (device.info().host_reaches) return 0;
  return costs::find_host_memory_rate({device.info().host_threads, options.disk_rates});
}

std::set<int32_t> may_update_on_host(const CompiledPlan& plan, const device::Device& device, double share) {
  const graph::JointGraph& joint = *plan.joint;
  const size_t link = host_link(plan);
  if (link == plan.link_tier.size() || plan.reaches(Tier::kHost) || joint.grad_scale >= 0 ||
      !joint.slices.empty() || !kernels::cpu_registry().facts().fuses_multiply_add)
    return {};
  const std::vector<bool> used = used_values(plan.problem);
  const auto fetched = [&](int32_t v) {
    const int32_t stored = joint.values[at(v)].alias_of < 0 ? plan.problem_value[at(v)] : -1;
    if (stored < 0 || !used[at(stored)]) return false;
    const plan::Value& value = plan.problem.values[at(stored)];
    return value.persistent && value.bytes >= kPageBytes;
  };
  // The weight, its packed form, or both: what ops read.
  const auto any_fetched = [&](const JointOp& update) {
    const std::vector<int32_t> made = made_on_host(plan, update);
    return std::any_of(made.begin(), made.end(), fetched);
  };
  // A GPU rounds to blocks of 8 bits by steps of its own.
  const auto in_blocks = [&](int32_t state) { return format(joint.values[at(state)].desc.dtype).block > 1; };
  std::vector<std::pair<int32_t, int64_t>> found;  // weight, bytes of all that its update uses
  int64_t all = 0;
  for (const JointOp& update : joint.ops(graph::kUpdate)) {
    const int32_t weight = update.out[update_op::kParameter], gradient = update.in[update_op::kGrad];
    const std::span<const int32_t> states = states_of(update);
    if (update.attrs.has("rng") || !any_fetched(update) || !fetched(gradient) ||
        !ops::optimizer(update.attrs.word("optimizer")).is(ops::UPDATE_ELEMENTWISE) ||
        (!packed_weights_of(joint, weight).empty() && packed_copy(plan, update) < 0) ||
        std::any_of(states.begin(), states.end(), in_blocks) ||
        host_kernel(plan, update, device.info().host_threads) == nullptr)
      continue;
    int64_t bytes = whole_pages(joint, gradient);
    for (const int32_t v : made_on_host(plan, update)) bytes += whole_pages(joint, v);
    for (const int32_t state : states) bytes += whole_pages(joint, state);
    found.emplace_back(weight, bytes);
    all += bytes;
  }
  std::set<int32_t> weights;
  const auto most = static_cast<int64_t>(share * static_cast<double>(all));
  int64_t room = std::min(plan.problem.links[link].capacity_bytes, most);
  for (auto next = found.rbegin(); next != found.rend(); ++next) {
    if (next->second > room) continue;
    room -= next->second;
    weights.insert(next->first);
  }
  return weights;
}

std::vector<int32_t> made_on_host(const CompiledPlan& plan, const JointOp& update) {
  std::vector<int32_t> made = {update.out[update_op::kParameter]};
  if (const int32_t packed = packed_copy(plan, update); packed >= 0) made.push_back(packed);
  return made;
}

void keep_states_on_host(CompiledPlan& plan) {
  int64_t& capacity = plan.problem.links[host_link(plan)].capacity_bytes;
  const std::vector<bool> used = used_values(plan.problem);
  each_on_host(plan, [&](const JointOp& update) {
    const std::span<const int32_t> states = states_of(update);
    std::vector<int32_t> staying(states.begin(), states.end());
    const int32_t weight = update.out[update_op::kParameter];
    if (!used[at(plan.problem_value[at(weight)])])
      staying.push_back(weight);  // its packed form is what ops read
    for (const int32_t value : staying) {
      plan.offloaded[value] = {Tier::kHost, {}};
      capacity -= whole_pages(*plan.joint, value);
    }
  });
}

std::vector<int32_t> host_update_order(const CompiledPlan& plan) {
  std::vector<int32_t> update_of(plan.problem.values.size(), -1), order;
  const std::vector<JointOp>& updates = plan.joint->ops(graph::kUpdate);
  size_t count = 0;
  for (size_t i = 0; i < updates.size(); ++i) {
    if (!plan.on_host(updates[i])) continue;
    ++count;
    for (const int32_t v : made_on_host(plan, updates[i]))
      if (plan.problem_value[at(v)] >= 0) update_of[at(plan.problem_value[at(v)])] = static_cast<int32_t>(i);
  }
  std::vector<bool> ordered(updates.size());
  for (const plan::Step& step : plan.plan.steps) {
    const int32_t update = step.kind == plan::StepKind::kIn ? update_of[at(step.index)] : -1;
    if (update < 0 || ordered[at(update)]) continue;
    ordered[at(update)] = true;
    order.push_back(update);
  }
  require(order.size() == count, Code::kInternal, "a weight that the host updates is never fetched");
  return order;
}

double least_seconds_with_host_updates(const CompiledPlan& plan) {
  if (plan.host_updated.empty()) return 0;
  const plan::Problem& problem = plan.problem;
  const plan::Link& link = problem.links[host_link(plan)];
  std::vector<uint8_t> is_weight(problem.values.size()), is_gradient(problem.values.size());
  double updates = device_copies_seconds(plan, plan.host_memory_bytes_per_second, true);
  each_on_host(plan, [&](const JointOp& update) {
    updates += seconds_beside_copy(plan, update);  // none of them stays on the device
    for (const int32_t v : made_on_host(plan, update))
      if (plan.problem_value[at(v)] >= 0) is_weight[at(plan.problem_value[at(v)])] = 1;
    is_gradient[at(plan.problem_value[at(update.in[update_op::kGrad])])] = 1;
  });
  std::vector<size_t> first(problem.values.size(), problem.ops.size());  // op that uses a weight first
  for (size_t o = problem.ops.size(); o-- > 0;)
    for (const int32_t v : problem.ops[o].inputs)
      if (is_weight[at(v)]) first[at(v)] = o;
  // Of ops from this one on, or of the copies behind its start: gradients leave, and weights come in but for what the device can hold.
  std::vector<double> rest(problem.ops.size() + 1, 0);
  double ops = 0, gradients = 0, read = 0;
  std::vector<uint8_t> is_read(problem.values.size());
  for (size_t o = problem.ops.size(); o-- > 0;) {
    ops += problem.ops[o].seconds;
    for (const int32_t v : problem.ops[o].outputs)
      if (std::exchange(is_gradient[at(v)], uint8_t{0}))  // its last op
        gradients += static_cast<double>(problem.values[at(v)].bytes);
    for (const int32_t v : problem.ops[o].inputs)
      if (is_weight[at(v)] && !std::exchange(is_read[at(v)], uint8_t{1}))
        read += static_cast<double>(problem.values[at(v)].bytes);
    const double in = std::max(0.0, read - static_cast<double>(problem.budget_bytes));
    rest[o] = std::max(ops, plan::seconds_of_both(gradients / link.out_bytes_per_second,
                                                  in / link.in_bytes_per_second, link.both_ways_factor));
  }
  double least = std::numeric_limits<double>::infinity();
  for (size_t v = 0; v < problem.values.size(); ++v)
    if (is_weight[v])
      least = std::min(
          least, static_cast<double>(problem.values[v].bytes) / link.in_bytes_per_second + rest[first[v]]);
  return updates + least;
}

double host_seconds(const CompiledPlan& plan) {
  double seconds = 0;
  each_on_host(plan, [&](const JointOp& update) { seconds += seconds_beside_copy(plan, update); });
  return seconds;
}

double device_copies_seconds(const CompiledPlan& plan, double rate, bool of_state) {
  const size_t link = host_link(plan);
  double bytes = 0;
  for (const auto& [value, crossing] : update_crossings(plan))
    if (at(crossing.link) == link && (!of_state || plan.offloaded.contains(value)))
      bytes += static_cast<double>(crossing.in + crossing.out);
  return rate > 0 ? bytes / rate : 0;
}

double host_wait_seconds(const CompiledPlan& plan, double device_seconds) {
  if (plan.host_updated.empty()) return 0;
  const plan::Timeline line = plan::simulate(plan.problem, plan.plan);
  std::vector<double> fetched(plan.problem.values.size(), -1);  // when, first
  for (size_t s = 0; s < plan.plan.steps.size(); ++s) {
    const plan::Step& step = plan.plan.steps[s];
    if (step.kind == plan::StepKind::kIn && fetched[at(step.index)] < 0)
      fetched[at(step.index)] = line.step_span[s][0];
  }
  double now = device_copies_seconds(plan, plan.host_memory_bytes_per_second) - device_seconds;
  double latest = -std::numeric_limits<double>::infinity();
  std::vector<double> ready(plan.problem.values.size(), 0);
  for (const int32_t i : host_update_order(plan)) {
    const JointOp& update = plan.joint->ops(graph::kUpdate)[at(i)];
    now += seconds_beside_copy(plan, update);
    for (const int32_t v : made_on_host(plan, update))
      if (const int32_t stored = plan.problem_value[at(v)]; stored >= 0) {
        ready[at(stored)] = now;
        latest = std::max(latest, now - fetched[at(stored)]);
      }
  }
  if (latest <= 0) return latest;
  return std::max(0.0, plan::simulate(plan.problem, plan.plan, ready).seconds - line.seconds);
}

bool HostShare::next(const CompiledPlan* plan, double step_seconds) {
  if (++tried_ == kMostShares || (plan == nullptr && share_ == 1)) return false;
  double next = 0;
  if (plan == nullptr) {
    low_ = share_;
    next = (low_ + high_) / 2;
  } else {
    const double wait = host_wait_seconds(*plan, plan->update_seconds - plan->host_wait_seconds);
    if (std::abs(wait) < kBalanced * step_seconds || (share_ == 1 && wait < 0)) return false;
    double per_share = wait_saved_on_device(*plan) / share_;
    if (last_share_ > 0)
      per_share = std::clamp((wait - last_wait_) / (share_ - last_share_), per_share / 2, per_share * 2);
    last_share_ = share_;
    last_wait_ = wait;
    (wait > 0 ? high_ : low_) = share_;
    next = share_ - wait / per_share;
  }
  const double edge = kFromEdge * (high_ - low_);
  next = std::clamp(next, low_ + edge, high_ - edge);
  return std::abs(std::exchange(share_, next) - next) >= kBalanced;
}

double device_update_seconds(const CompiledPlan& plan, const costs::Model& costs) {
  double seconds = 0;
  each_on_host(
      plan, [&](const JointOp& update) { seconds += costs.seconds(query_of(*plan.joint, update)).seconds; });
  return seconds;
}

void make_host_kernels(CompiledPlan& plan, const device::Device& device) {
  const std::vector<JointOp>& updates = plan.joint->ops(graph::kUpdate);
  plan.host_kernels.assign(updates.size(), -1);
  for (size_t i = 0; i < updates.size(); ++i) {
    if (!plan.on_host(updates[i])) continue;
    plan.host_kernels[i] = static_cast<int32_t>(plan.kernels.size());
    plan.kernels.push_back(host_kernel(plan, updates[i], device.info().host_threads));
  }
}

}  // namespace cairn::engine
