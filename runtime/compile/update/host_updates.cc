#include "runtime/compile/update/host_updates.h"

#include <limits>
#include <utility>

#include "kernels/registry.h"
#include "runtime/compile/residency/gradients.h"
#include "runtime/compile/residency/homes.h"
#include "runtime/compile/update/streamed.h"
#include "runtime/costs/model.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

// The packed form that the weight's update writes; -1: the weight has none, several, or one that is no copy.
int32_t packed_copy(const Lowered& plan, const JointOp& update) {
  const std::vector<int32_t> all = derived_weights_of(*plan.joint, update.out[update_op::kParameter]);
  return all.size() == 1 && plan.registry->packed_is_copy ? plan.joint->ops(graph::kRepack)[at(all[0])].out[0]
                                                          : -1;
}

// The update reads the scale of gradients, as those concurrent with backward do.
bool reads_scale(const JointOp& update) {
  return update.out.size() > update_op::kGradScale && update.out[update_op::kGradScale] >= 0;
}

// The processor's kernel of an update. nullptr: there is none, or it needs a workspace.
std::unique_ptr<kernels::Kernel> host_kernel(const Lowered& plan, const JointOp& update, int threads) {
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

// The ring's part of the host tier: enough for one disk to read and write all the time, and little of the tier.
int64_t ring_bytes(int64_t capacity) {
  constexpr int64_t kPiece = int64_t{64} << 20, kLeast = 4 * kPageBytes, kShare = 16;
  return std::clamp(capacity / kShare, kSlots * kLeast, kSlots * kPiece) / kPageBytes * kPageBytes;
}

// The disk as the host reads and writes it. Nothing: the plan does not have both a host and a disk tier.
std::optional<plan::Link> host_disk_link(const Lowered& plan, const device::Device& device,
                                         const PlanOptions& options) {
  const size_t disk = link_to(plan, Tier::kDisk), count = plan.link_tier.size();
  if (disk == count || link_to(plan, Tier::kHost) == count) return std::nullopt;
  const std::optional<plan::Link>& measured = options.machine.disk;
  return costs::Model(device.info(), options.costs)
      .host_disk_link(plan.problem.links[disk], measured ? &*measured : nullptr);
}

// An update that the host may make.
struct Candidate {
  int32_t weight;
  int64_t bytes;    // of everything that the update uses
  size_t first_op;  // the first op of the problem that reads what it makes
};

// The last candidates, within `most` bytes.
std::set<int32_t> last_ones(const std::vector<Candidate>& candidates, int64_t most) {
  std::set<int32_t> weights;
  for (auto next = candidates.rbegin(); next != candidates.rend(); ++next) {
    if (next->bytes > most) continue;
    most -= next->bytes;
    weights.insert(next->weight);
  }
  return weights;
}

// Candidates within `most` bytes, spread evenly from the last to the first. Those that the very first reader waits
// for come last.
std::set<int32_t> evenly(const std::vector<Candidate>& candidates, int64_t most) {
  size_t first = std::numeric_limits<size_t>::max();
  for (const Candidate& c : candidates) first = std::min(first, c.first_op);
  std::vector<Candidate> others, waited_for;
  for (const Candidate& c : candidates) (c.first_op > first ? others : waited_for).push_back(c);
  double all = 0;
  for (const Candidate& c : others) all += static_cast<double>(c.bytes);
  const double share = static_cast<double>(most) / all;
  std::set<int32_t> weights;
  double passed = 0, taken = 0;
  for (auto next = others.rbegin(); next != others.rend(); ++next) {
    const auto bytes = static_cast<double>(next->bytes);
    passed += bytes;
    if (taken >= share * passed || taken + bytes > static_cast<double>(most)) continue;
    taken += bytes;
    weights.insert(next->weight);
  }
  weights.merge(last_ones(waited_for, most - static_cast<int64_t>(taken)));
  return weights;
}

std::set<int32_t> may_update_on_host(const Lowered& plan, const device::Device& device, double share) {
  const graph::JointGraph& joint = *plan.joint;
  const std::vector<plan::Link>& links = plan.problem.links;
  const size_t link = link_to(plan, Tier::kHost);
  if (link == links.size() || plan.reaches(Tier::kHost) || !joint.slices.empty() ||
      !kernels::cpu_registry().facts().fuses_multiply_add)
    return {};
  const bool fused = joint.grad_scale >= 0;
  const std::vector<bool> used = used_by_ops(plan.problem);
  const auto fetched = [&](int32_t v) {
    const int32_t stored = joint.values[at(v)].alias_of < 0 ? plan.problem_value[at(v)] : -1;
    if (stored < 0 || !used[at(stored)]) return false;
    const plan::Value& value = plan.problem.values[at(stored)];
    return value.persistent && value.bytes >= kPageBytes;
  };
  // Ops read the weight, its packed form, or both.
  const auto any_fetched = [&](const JointOp& update) {
    const std::vector<int32_t> made = made_on_host(plan, update);
    return std::any_of(made.begin(), made.end(), fetched);
  };
  // A GPU rounds states in blocks of 8 bits in another order of operations.
  const auto in_blocks = [&](int32_t state) { return format(joint.values[at(state)].desc.dtype).block > 1; };
  const std::vector<bool> splits = splitting(joint);
  const auto streams = [&](int32_t state) { return !plan.host_disk || splits[at(state)]; };
  const std::vector<size_t> first = first_readers(plan.problem);
  std::vector<Candidate> found;
  int64_t all = 0;
  for (const JointOp& update : joint.ops(graph::kUpdate)) {
    const int32_t weight = update.out[update_op::kParameter], gradient = update.in[update_op::kGrad];
    const std::span<const int32_t> states = states_of(update);
    if (fused != reads_scale(update) || update.attrs.has("rng") || !any_fetched(update) ||
        !fetched(gradient) || !ops::optimizer(update.attrs.word("optimizer")).is(ops::UPDATE_ELEMENTWISE) ||
        (!derived_weights_of(joint, weight).empty() && packed_copy(plan, update) < 0) ||
        std::any_of(states.begin(), states.end(), in_blocks) ||
        !std::all_of(states.begin(), states.end(), streams) ||
        host_kernel(plan, update, device.info().host_threads) == nullptr)
      continue;
    Candidate candidate{weight, whole_pages(joint, gradient), plan.problem.ops.size()};
    for (const int32_t v : made_on_host(plan, update)) {
      candidate.bytes += whole_pages(joint, v);
      if (const int32_t stored = plan.problem_value[at(v)]; stored >= 0)
        candidate.first_op = std::min(candidate.first_op, first[at(stored)]);
    }
    for (const int32_t state : states) candidate.bytes += whole_pages(joint, state);
    found.push_back(candidate);
    all += candidate.bytes;
  }
  const auto most = static_cast<int64_t>(share * static_cast<double>(all));
  int64_t capacity = links[link].capacity_bytes;
  if (plan.host_disk && capacity >= 2 * ring_bytes(capacity)) {
    const int64_t disk = links[link_to(plan, Tier::kDisk)].capacity_bytes;
    capacity = disk > std::numeric_limits<int64_t>::max() - capacity ? std::numeric_limits<int64_t>::max()
                                                                     : capacity + disk;
  }
  return evenly(found, std::min(capacity, most));
}

// The part of the measured rate of the host's memory that updates and sums there get, while copies use it as well.
// With this part, steps were shortest on the machine of bench/results/gpu-rates-2026-11-26.md.
constexpr double kBesideCopies = 0.27;

}  // namespace

double host_memory_rate(const device::Device& device, const PlanOptions& options) {
  if (options.costs != nullptr && options.costs->model)
    return options.costs->model->host_memory_bytes_per_second;
  if (device.info().host_reaches) return 0;
  return kBesideCopies * options.machine.host_memory_bytes_per_second;
}

std::optional<Lowered> with_host_updates(Lowered from, const device::Device& device,
                                         const PlanOptions& options, double share, bool with_disk) {
  if (from.joint->averages()) return {};                  // they move on the device, when a step ends
  Lowered plan = let_gradients_persist(std::move(from));  // the host reads them in its tier
  plan.host_updated = may_update_on_host(plan, device, share);
  plan.host_memory_bytes_per_second = host_memory_rate(device, options);
  if (with_disk) {
    plan.host_disk = host_disk_link(plan, device, options);
    std::set<int32_t> with = may_update_on_host(plan, device, share);
    if (with == plan.host_updated) return {};
    plan.host_updated = std::move(with);
  }
  if (plan.host_updated.empty()) return {};
  return plan;
}

int64_t host_updated_bytes(const Lowered& plan) {
  int64_t bytes = 0;
  for (const int32_t weight : plan.host_updated) bytes += stored_bytes(*plan.joint, weight);
  return bytes;
}

std::vector<int32_t> made_on_host(const Lowered& plan, const JointOp& update) {
  std::vector<int32_t> made = {update.out[update_op::kParameter]};
  if (const int32_t packed = packed_copy(plan, update); packed >= 0) made.push_back(packed);
  return made;
}

std::vector<int32_t> host_scalars(const JointOp& update) {
  std::vector<int32_t> scalars = {update.in[update_op::kHyper]};
  if (reads_scale(update)) {
    scalars.push_back(update.in[update_op::kTotal]);
    scalars.push_back(update.out[update_op::kGradScale]);
  }
  return scalars;
}

Lowered with_states_on_host(Lowered plan) {
  const size_t host = link_to(plan, Tier::kHost);
  int64_t& capacity = plan.problem.links[host].capacity_bytes;
  const std::vector<bool> used = used_by_ops(plan.problem);
  int64_t all = 0;
  each_on_host(plan, [&](const JointOp& update) {
    const std::span<const int32_t> states = states_of(update);
    std::vector<int32_t> uses = made_on_host(plan, update);
    uses.push_back(update.in[update_op::kGrad]);
    uses.insert(uses.end(), states.begin(), states.end());
    for (const int32_t value : uses) all += whole_pages(*plan.joint, value);
    for (const int32_t state : states) plan.offloaded[state] = {Tier::kHost, {}};
    const int32_t weight = uses[0];
    if (!used[at(plan.problem_value[at(weight)])])
      plan.offloaded[weight] = {Tier::kHost, {}};  // ops read only its packed form
  });
  int64_t homes = 0;
  if (plan.host_disk && all > capacity) {
    plan.host_ring_bytes = ring_bytes(capacity);
    capacity -= plan.host_ring_bytes;
    homes = residency_bytes(plan)[host];
  }
  each_on_host(plan, [&](const JointOp& update) {
    const std::span<const int32_t> states = states_of(update);
    std::vector<int32_t> staying(states.begin(), states.end());
    if (const int32_t weight = update.out[update_op::kParameter]; plan.offloaded.contains(weight))
      staying.push_back(weight);
    int64_t bytes = 0;
    for (const int32_t value : staying) bytes += whole_pages(*plan.joint, value);
    const bool here = !plan.streams_on_host() || capacity - homes >= bytes;
    const size_t link = here ? host : link_to(plan, Tier::kDisk);
    plan.problem.links[link].capacity_bytes -= bytes;
    for (const int32_t value : staying) plan.offloaded.at(value).tier = plan.link_tier[link];
  });
  return plan;
}

std::vector<int32_t> copied_by_host_update(const Lowered& plan, const JointOp& update) {
  std::vector<int32_t> copied;
  const auto add = [&](int32_t v) {
    if (plan.problem_value[at(v)] >= 0) copied.push_back(plan.problem_value[at(v)]);
  };
  for (const int32_t v : made_on_host(plan, update)) add(v);
  if (!plan.defers(update)) add(update.in[update_op::kGrad]);
  return copied;
}

std::vector<int32_t> host_update_order(const Planned& plan, bool deferred) {
  const bool last = !deferred;
  constexpr size_t kNever = std::numeric_limits<size_t>::max();
  // problem value -> the step of its first or last copy
  std::vector<size_t> copied(plan.problem.values.size(), kNever);
  for (size_t s = 0; s < plan.plan.steps.size(); ++s) {
    const plan::Step& step = plan.plan.steps[s];
    const bool copy = step.kind == plan::StepKind::kIn || (last && step.kind == plan::StepKind::kOut);
    if (copy && (last || copied[at(step.index)] == kNever)) copied[at(step.index)] = s;
  }
  std::vector<std::pair<size_t, int32_t>> order;
  const std::vector<JointOp>& updates = plan.joint->ops(graph::kUpdate);
  for (size_t i = 0; i < updates.size(); ++i) {
    if (!plan.on_host(updates[i]) || plan.defers(updates[i]) != deferred) continue;
    size_t when = last ? 0 : kNever;
    for (const int32_t v : copied_by_host_update(plan, updates[i]))
      when = last ? std::max(when, copied[at(v)]) : std::min(when, copied[at(v)]);
    require(when != kNever, Code::kInternal, "what the host updates is never copied");
    order.emplace_back(when, static_cast<int32_t>(i));
  }
  std::sort(order.begin(), order.end());
  std::vector<int32_t> found;
  for (const auto& [when, update] : order) found.push_back(update);
  return found;
}

}  // namespace cairn::engine
