#include "runtime/compile/residency/host_adds.h"

#include <algorithm>
#include <optional>

#include "kernels/registry.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/streamed.h"

namespace cairn::engine {
namespace {

using graph::JointOp;
using When = ForcedChoices::When;

// Starting the sum of a smaller gradient on the host takes longer than fetching the gradient.
constexpr int64_t kWorthAdding = 256 << 10;

// acc += x, both on the host tier.
JointOp sum_of(const graph::JointValue& gradient) {
  JointOp op;
  op.code = ops::OpCode::k_accumulate;
  op.name = gradient.name;
  op.accumulates = 1;
  return op;
}
Operands operands_of(const TensorDesc& in, const TensorDesc& out) {
  Operands operands;
  operands.in = {in};
  operands.out = {out};
  operands.in_present = operands.out_present = 1;
  return operands;
}

// The attributes of a sum of squares on the host that make the device's bits. Nothing: the host cannot make them.
std::optional<Attrs> squares_order(const kernels::Registry& registry) {
  if (registry.squares_threads > 0) return Attrs{{"threads", int64_t{registry.squares_threads}}};
  if (registry.squares_chunk == kernels::cpu_registry().squares_chunk) return Attrs{};
  return std::nullopt;
}
// The value of a gradient's sum of squares; -1: backward makes none.
int32_t squares_of(const graph::JointGraph& joint, int32_t gradient) {
  for (const graph::ParameterSlot& slot : joint.parameters)
    if (slot.gradient == gradient) return joint.squares_in_backward ? slot.squares : -1;
  return -1;
}
JointOp squares_op(const Lowered& plan, const graph::JointValue& gradient) {
  JointOp op;
  op.code = ops::OpCode::k_sum_squares;
  op.name = gradient.name;
  op.attrs = squares_order(*plan.registry).value();
  return op;
}

// The op makes all of a gradient and adds it once.
bool adds_once(const JointOp& op, size_t out) {
  return (op.code == ops::OpCode::k_linear_grad_weight && out == 0) || op.code == ops::OpCode::k_accumulate;
}

// A gradient that the host may sum. made: the seconds of the ops up to the one that makes it.
struct Summand {
  int32_t gradient;
  double made;
};

// The gradients that the host may sum, in the order in which backward makes them.
std::vector<Summand> candidates(const Lowered& plan, const device::Device& device,
                                const PlanOptions& options) {
  const graph::JointGraph& joint = *plan.joint;
  if (options.forced.host_adds == When::kNever || options.micro_steps <= 1 || joint.grad_scale >= 0 ||
      link_to(plan, Tier::kHost) == plan.link_tier.size() || plan.reaches(Tier::kHost) ||
      !joint.slices.empty() || joint.updates_deferred ||
      (joint.squares_in_backward && !squares_order(*plan.registry)))
    return {};
  const bool always = options.forced.host_adds == When::kAlways;
  if (!always && host_memory_rate(device, options) <= 0) return {};
  std::vector<int32_t> uses(joint.values.size());
  for (const JointOp& op : joint.ops())
    for (const auto* list : {&op.in, &op.out})
      for (const int32_t v : *list)
        if (v >= 0 && op.code != ops::OpCode::k_sum_squares) ++uses[at(joint.storage(v))];
  std::vector<Summand> found;
  double now = 0;
  for (size_t o = 0; o < plan.problem.ops.size(); ++o) {
    now += plan.problem.ops[o].seconds;
    for (const int32_t index : plan.problem_op[o]) {
      const JointOp& op = joint.ops()[at(index)];
      for (size_t k = 0; k < op.out.size(); ++k) {
        if (op.out[k] < 0 || !adds_once(op, k) || (op.accumulates & op.first_writer & 1u << k) == 0) continue;
        const int32_t v = op.out[k], stored = plan.problem_value[at(v)];
        const graph::JointValue& value = joint.values[at(v)];
        if (value.role != graph::Role::kGradient || value.alias_of >= 0 || uses[at(v)] != 1 || stored < 0 ||
            value.desc.bytes() < (always ? kPageBytes : kWorthAdding) ||
            !plan.problem.values[at(stored)].persistent)
          continue;
        const Operands operands = operands_of(value.desc, value.desc);
        const auto kernel =
            kernels::cpu_registry().find(signature_of(sum_of(value), operands, device.info().host_threads));
        if (kernel != nullptr && kernel->workspace_bytes() == 0) found.push_back({v, now});
      }
    }
  }
  return found;
}

// Each byte passes through the host's memory four times: the gradient that arrives is written and read, the sum is
// read and written. With squares it is read once more.
double seconds_of(const Lowered& plan, int32_t gradient) {
  const double rate = plan.host_memory_bytes_per_second, passes = plan.joint->squares_in_backward ? 5 : 4;
  return rate > 0 ? passes * static_cast<double>(stored_bytes(*plan.joint, gradient)) / rate : 0;
}

}  // namespace

WithHostAdds with_host_adds(Lowered plan, const device::Device& device, const PlanOptions& options,
                            double stretch) {
  plan.host_added.clear();
  const std::vector<Summand> all = candidates(plan, device, options);
  if (all.empty()) return {std::move(plan)};
  plan.host_memory_bytes_per_second = host_memory_rate(device, options);
  const double end = plan.problem.op_seconds() * stretch;
  double now = 0;
  int64_t largest = 0, sum = 0, workspace = 0;
  for (const Summand& c : all) {
    const double then = std::max(now, c.made * stretch) + seconds_of(plan, c.gradient);
    if (options.forced.host_adds != When::kAlways && then > end) continue;
    now = then;
    HostAdd& add = plan.host_added[c.gradient] = {};
    add.squares_value = squares_of(*plan.joint, c.gradient);
    if (add.squares_value >= 0) {
      const auto& values = plan.joint->values;
      const JointOp op = squares_op(plan, values[at(c.gradient)]);
      const Operands operands = operands_of(values[at(c.gradient)].desc, values[at(add.squares_value)].desc);
      const auto kernel =
          kernels::cpu_registry().find(signature_of(op, operands, device.info().host_threads));
      require(kernel != nullptr, Code::kInternal, "no sum of squares for ", values[at(c.gradient)].name);
      workspace = std::max(workspace, kernel->workspace_bytes());
    }
    largest = std::max(largest, stored_bytes(*plan.joint, c.gradient));
    sum += align_up(stored_bytes(*plan.joint, c.gradient), kPageBytes);
  }
  if (plan.host_added.empty()) return {std::move(plan), 0, all.size()};
  // The host adds one gradient while the next one arrives.
  plan.add_ring_bytes = std::min(2 * align_up(largest, kPageBytes), sum);
  plan.add_workspace_bytes = align_up(workspace, kAlignment);
  const auto numbers = static_cast<int64_t>(plan.host_added.size()) * kAlignment;
  const int64_t bytes = align_up(plan.add_ring_bytes + plan.add_workspace_bytes + numbers, kPageBytes);
  int64_t& capacity = plan.problem.links[link_to(plan, Tier::kHost)].capacity_bytes;
  if (capacity < bytes) {
    plan.host_added.clear();
    return {std::move(plan), 0, all.size()};
  }
  capacity -= bytes;
  const size_t chosen = plan.host_added.size();
  return {std::move(plan), chosen, all.size()};
}

double host_add_wait_seconds(const Planned& plan) {
  if (plan.host_added.empty()) return 0;
  std::vector<int32_t> gradient(plan.problem.values.size(), -1);
  for (const auto& [value, add] : plan.host_added) gradient[at(plan.problem_value[at(value)])] = value;
  const plan::Timeline line = plan::simulate(plan.problem, plan.plan);
  std::vector<std::pair<double, int32_t>> sent;  // seconds, gradient
  for (size_t s = 0; s < plan.plan.steps.size(); ++s) {
    const plan::Step& step = plan.plan.steps[s];
    if (step.kind == plan::StepKind::kOut && gradient[at(step.index)] >= 0)
      sent.emplace_back(line.step_span[s][1], gradient[at(step.index)]);
  }
  std::sort(sent.begin(), sent.end());
  double now = 0;
  for (const auto& [when, value] : sent) now = std::max(now, when) + seconds_of(plan, value);
  return std::max(0.0, now - line.seconds);
}

std::map<int32_t, HostAdd> host_adds_with_kernels(const Lowered& plan, KernelMaker& maker) {
  std::map<int32_t, HostAdd> adds = plan.host_added;
  for (auto& [value, add] : adds) {
    const graph::JointValue& gradient = plan.joint->values[at(value)];
    add.add = maker.make_on_host(sum_of(gradient), operands_of(gradient.desc, gradient.desc));
    if (add.squares_value >= 0)
      add.squares =
          maker.make_on_host(squares_op(plan, gradient),
                             operands_of(gradient.desc, plan.joint->values[at(add.squares_value)].desc));
  }
  return adds;
}

}  // namespace cairn::engine
