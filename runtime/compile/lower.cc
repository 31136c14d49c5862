// Turns a joint graph into the planner's problem. Each storage is one value of the problem; aliases have no bytes of
// their own.
#include <algorithm>
#include <unordered_set>

#include "runtime/compile/compile.h"
#include "runtime/compile/cost_query.h"
#include "runtime/compile/derived_weights.h"
#include "runtime/compile/kernel_maker.h"
#include "runtime/compile/regions/region_policies.h"
#include "runtime/compile/residency/gradients.h"
#include "runtime/costs/model.h"

namespace cairn::engine {
namespace {

using graph::JointOp;
using graph::JointValue;
using graph::Role;

std::string unique(std::unordered_set<std::string>& taken, const std::string& wanted, size_t i) {
  std::string name = wanted.empty() ? cat('#', i) : wanted;
  while (!taken.insert(name).second) name += cat('#', i);
  return name;
}

bool runs(const JointOp& op) { return !ops::row(op.code).is(ops::ALIAS); }

class Lowering {
 public:
  Lowering(Lowered plan, device::Device& device, const PlanOptions& options)
      : plan_(std::move(plan)),
        joint_(*plan_.joint),
        device_(device),
        options_(options),
        maker_(plan_, device),
        costs_(device.info(), options.costs),
        region_rules_(region_rules(*joint_.forward, options)) {}

  Lowered run() {
    values();
    regions();
    plan_.op_kernel[graph::kMicroBatch].assign(joint_.ops().size(), -1);
    plan_.op_measured.assign(joint_.ops().size(), false);
    for (size_t phase = 0; phase < joint_.phases.size(); ++phase)
      if (phase != graph::kMicroBatch) plan_.op_kernel[phase] = kernels_of(joint_.phases[phase]);
    for (size_t i = 0; i < joint_.ops().size(); ++i) {
      if (static_cast<int32_t>(i) == joint_.backward_begin)
        plan_.problem.backward_begin = static_cast<int32_t>(plan_.problem.ops.size());
      if (runs(joint_.ops()[i])) op(static_cast<int32_t>(i));
    }
    if (joint_.backward_begin >= static_cast<int32_t>(joint_.ops().size()))
      plan_.problem.backward_begin = static_cast<int32_t>(plan_.problem.ops.size());
    links();
    policies();
    // Packing and the optimizer run while only persistent values live. The arena must have room for their workspace,
    // too.
    if (!plan_.problem.ops.empty()) {
      int64_t& workspace = plan_.problem.ops.front().workspace_bytes;
      workspace = std::max(workspace, between_steps_workspace());
    }
    seconds_around();
    plan_.kernels = maker_.kernels();
    return std::move(plan_);
  }

 private:
  void values() {
    const size_t count = joint_.values.size();
    std::vector<bool> used(count);
    for (size_t v = 0; v < count; ++v)
      used[v] = joint_.values[v].alias_of < 0 && kind(joint_.values[v].role).is(graph::PERSISTS) &&
                joint_.slices_of(static_cast<int32_t>(v)) == nullptr;
    for (const JointOp& op : joint_.ops())
      if (runs(op))
        for (const auto* list : {&op.in, &op.out})
          for (const int32_t v : *list)
            if (v >= 0) used[static_cast<size_t>(joint_.storage(v))] = true;
    plan_.problem_value.assign(count, -1);
    std::unordered_set<std::string> names;
    if (plan_.layout != nullptr) shared_values(names);
    for (size_t v = 0; v < count; ++v) {
      if (!used[v] || plan_.problem_value[v] >= 0) continue;
      const JointValue& value = joint_.values[v];
      plan_.problem_value[v] = static_cast<int32_t>(plan_.problem.values.size());
      plan_.problem.values.push_back({unique(names, value.name, v), align_up(value.desc.bytes(), kAlignment),
                                      kind(value.role).is(graph::PERSISTS)});
    }
    made_.assign(plan_.problem.values.size(), false);
  }

  // The persistent values of a set of plans come first, in the order of its layout, even if this plan does not use
  // them.
  void shared_values(std::unordered_set<std::string>& names) {
    const StoreLayout& layout = *plan_.layout;
    for (size_t e = 0; e < layout.values.size(); ++e) {
      const StoreLayout::Entry& entry = layout.values[e];
      if (entry.sliced) {  // its slices are the values
        plan_.layout_value.push_back(-1);
        continue;
      }
      plan_.layout_value.push_back(static_cast<int32_t>(plan_.problem.values.size()));
      plan_.problem.values.push_back(
          {unique(names, entry.name, e), align_up(entry.desc.bytes(), kAlignment), true});
    }
    const std::vector<int32_t>& entry_of = layout.entry_of[plan_.index_in_set];
    for (size_t v = 0; v < entry_of.size(); ++v)
      if (entry_of[v] >= 0) plan_.problem_value[v] = plan_.layout_value[static_cast<size_t>(entry_of[v])];
  }

  int32_t kernel_of(const JointOp& op) {
    try {
      return maker_.make(op);
    } catch (const Error& error) {
      const bool host = op.code == ops::OpCode::k_custom || op.code == ops::OpCode::k_custom_grad;
      if (error.code() != Code::kUnsupported || op.amp_rule < 0 || host) throw;
      const graph::AmpRule& rule = joint_.amp_rules[static_cast<size_t>(op.amp_rule)];
      fail(error.code(), error.what(), ", as the AMP rule ", to_string(rule),
           " asks; leave the op out of it, or follow it by a rule with the class '", graph::kAmpDefault, "'");
    }
  }

  void op(int32_t index) {
    const JointOp& op = joint_.ops()[static_cast<size_t>(index)];
    const ops::OpRow& row = ops::row(op.code);
    plan::Op lowered;
    lowered.name = unique(op_names_, op.name, static_cast<size_t>(index));
    lowered.region = op.region;
    lowered.recomputable =
        row.is(ops::RECOMPUTE) && !row.is(ops::EFFECT) && op.accumulates == 0 && custom_reruns(op) &&
        // With fused updates, an op of backward cannot be recomputed: a parameter that it reads may have changed.
        (joint_.grad_scale < 0 || !op.backward) && !reads_appended(op);
    const auto add = [](std::vector<int32_t>& list, int32_t v) {
      if (std::find(list.begin(), list.end(), v) == list.end()) list.push_back(v);
    };
    for (const int32_t v : op.in)
      if (v >= 0) add(lowered.inputs, stored(v));
    for (const int32_t v : op.out) {
      if (v < 0) continue;
      const int32_t value = stored(v);
      // A value that is added to existed before the op. Of persistent values an op makes only outputs.
      const bool made_here = !plan_.problem.values[static_cast<size_t>(value)].persistent ||
                             joint_.values[static_cast<size_t>(joint_.storage(v))].role == Role::kOutput;
      if (!made_here || made_[static_cast<size_t>(value)]) {
        require(plan_.problem.values[static_cast<size_t>(value)].persistent, Code::kInternal, "op '", op.name,
                "' makes '", plan_.problem.values[static_cast<size_t>(value)].name, "' a second time");
        lowered.recomputable = lowered.recomputable && made_here;
        add(lowered.inputs, value);
      } else {
        made_[static_cast<size_t>(value)] = true;
        add(lowered.outputs, value);
      }
    }
    const int32_t kernel = kernel_of(op);
    lowered.workspace_bytes = maker_.workspace_bytes(kernel);
    const costs::Answer cost = op_seconds(joint_, index, costs_);
    lowered.seconds = cost.seconds;
    if (op.part == graph::Part::kLoss) lowered.seconds /= static_cast<double>(joint_.effective_steps);
    plan_.measured_ops += cost.measured ? 1 : 0;
    plan_.op_measured[static_cast<size_t>(index)] = cost.measured;
    plan_.op_kernel[graph::kMicroBatch][static_cast<size_t>(index)] = kernel;
    if (op.code == ops::OpCode::k_sum_squares &&
        joint_.values[static_cast<size_t>(op.in[0])].role == Role::kGradient)
      return joins(lowered, index, cost.measured);
    plan_.problem_op.push_back({index});
    plan_.problem.ops.push_back(std::move(lowered));
  }

  // Joins the sum of squares of a gradient to the op before it, which writes the gradient, so that the gradient
  // is on the device for both.
  void joins(const plan::Op& squares, int32_t index, bool measured) {
    plan::Op& writer = plan_.problem.ops.back();
    std::vector<int32_t>& parts = plan_.problem_op.back();
    const std::vector<int32_t>& made = joint_.ops()[static_cast<size_t>(parts.front())].out;
    require(std::find(made.begin(), made.end(), joint_.ops()[static_cast<size_t>(index)].in[0]) != made.end(),
            Code::kInternal, "'", squares.name, "' does not follow what makes the gradient");
    const bool others = std::all_of(parts.begin(), parts.end(), [&](int32_t part) {
      return plan_.op_measured[static_cast<size_t>(part)];
    });
    // of two ops that both counted, one remains if both are measured, else none
    plan_.measured_ops -= measured || others ? 1 : 0;
    writer.seconds += squares.seconds;
    writer.workspace_bytes = std::max(writer.workspace_bytes, squares.workspace_bytes);
    for (const int32_t v : squares.inputs)
      if (std::find(writer.inputs.begin(), writer.inputs.end(), v) == writer.inputs.end())
        writer.inputs.push_back(v);
    parts.push_back(index);
  }

  // One kernel for all ops of the phase, if the backend has one and they add to one sum.
  std::vector<int32_t> kernels_of(const graph::Phase& phase) {
    const std::vector<JointOp>& ops = phase.ops;
    const bool one_sum = std::all_of(ops.begin(), ops.end(), [&](const JointOp& op) {
      return op.out == ops[0].out && op.code == ops::OpCode::k_sum_squares &&
             (op.accumulates & ~op.first_writer) == (&op == ops.data() ? 0u : 1u);
    });
    if (one_sum && ops.size() > 1) {
      std::vector<BatchedOp> all;
      for (const JointOp& op : ops) {
        all.push_back({&op, Operands(joint_, op)});
        if (all.size() > 1) all.back().operands.out_present = 0;
      }
      if (const int32_t kernel = maker_.make_batch(all); kernel >= 0) return {kernel};
    }
    std::vector<int32_t> kernels;
    for (const JointOp& op : ops) kernels.push_back(maker_.make(op));
    return kernels;
  }

  int32_t stored(int32_t value) const {
    return plan_.problem_value[static_cast<size_t>(joint_.storage(value))];
  }

  // A later op may have changed it until the op would run again.
  bool reads_appended(const JointOp& op) const {
    return std::any_of(op.in.begin(), op.in.end(), [&](int32_t v) {
      return v >= 0 && kind(joint_.values[static_cast<size_t>(joint_.storage(v))].role).is(graph::APPENDED);
    });
  }

  bool custom_reruns(const JointOp& op) const {
    if (op.code != ops::OpCode::k_custom) return true;
    return joint_.forward->customs()[static_cast<size_t>(op.attrs.integer("custom"))].recomputable;
  }

  // The seconds of a step outside of the plan. In a profile, optimizer and host have entries of their own.
  void seconds_around() {
    for (const JointOp& op : joint_.ops(graph::kRepack))
      if (joint_.updated(op.in[0])) plan_.update_seconds += costs_.seconds(query_of(joint_, op)).seconds;
    if (!joint_.ops(graph::kUpdate).empty())
      plan_.update_seconds += costs_.seconds(optimizer_query(joint_)).seconds;
    plan_.host_seconds = costs_.seconds(host_query(joint_)).seconds;
  }

  int64_t between_steps_workspace() const {
    int64_t most = 0;
    for (size_t phase = 0; phase < joint_.phases.size(); ++phase)
      if (phase != graph::kMicroBatch)
        for (const int32_t kernel : plan_.op_kernel[phase])
          most = std::max(most, maker_.workspace_bytes(kernel));
    return most;
  }

  void regions() {
    const std::vector<graph::Region>& regions = joint_.forward->regions();
    for (size_t i = 0; i < regions.size(); ++i)
      plan_.problem.regions.push_back({regions[i].name, regions[i].parent, region_rules_[i].policy, -1});
  }

  void policies() {
    auto& regions = plan_.problem.regions;
    for (size_t i = 0; i < regions.size(); ++i) {
      const RegionRule& rule = region_rules_[i];
      if (rule.policy != Policy::kOffload || !rule.tier) continue;
      const auto link = std::find(plan_.link_tier.begin(), plan_.link_tier.end(), *rule.tier);
      if (link != plan_.link_tier.end())
        regions[i].offload_tier = static_cast<int32_t>(link - plan_.link_tier.begin());
    }
    if (options_.policy == Policy::kPlannerDecides || !regions.empty()) return;
    regions.push_back(
        {"graph", -1, options_.policy, -1});  // without regions the policy holds for all of the graph
    for (plan::Op& op : plan_.problem.ops) op.region = 0;
  }

  void links() {
    std::vector<Tier> tiers;
    const auto add = [&](Tier tier) {
      require(tier != Tier::kDevice, Code::kInvalidArgument,
              "'device' is no tier to offload to; host and disk are");
      if (std::find(tiers.begin(), tiers.end(), tier) == tiers.end()) tiers.push_back(tier);
    };
    for (const Tier tier : options_.tiers) add(tier);
    for (const RegionRule& rule : region_rules_) {
      if (rule.policy != Policy::kOffload || rule.by == RegionRule::By::kPlan) continue;
      if (rule.tier || tiers.empty()) add(rule.tier.value_or(Tier::kHost));
    }
    const bool linked = options_.link_bytes_per_second > 0 || device_.info().link_bytes_per_second > 0;
    // Offloading to the host frees memory of a device that has its own. The host tier of a CPU is the same memory.
    if (tiers.empty() && (linked || is_elsewhere(options_) || options_.policy == Policy::kOffload))
      add(Tier::kHost);
    for (const Tier tier : tiers) {
      plan_.link_tier.push_back(tier);
      plan_.problem.links.push_back(tier == Tier::kHost ? host_link() : disk_link());
    }
  }

  plan::Link host_link() const {
    return costs_.host_link(options_.link_bytes_per_second > 0 ? options_.link_bytes_per_second
                                                               : device_.info().throttle());
  }

  plan::Link disk_link() const {
    if (options_.costs != nullptr && options_.costs->model) return costs_.disk_link(INT64_MAX);
    const costs::MachineFacts& machine = options_.machine;
    // A plan that happens to offload nothing to the disk would not notice.
    require(machine.disk_refusal.empty(), Code::kIo, "disk tier: ", machine.disk_refusal);
    const bool measured = machine.disk && !costs_.knows_disk();
    return costs_.disk_link(machine.disk_room_bytes, measured ? &*machine.disk : nullptr);
  }

  Lowered plan_;
  const graph::JointGraph& joint_;
  device::Device& device_;
  const PlanOptions& options_;
  KernelMaker maker_;
  const costs::Model costs_;
  const std::vector<RegionRule> region_rules_;  // by region of the graph
  std::unordered_set<std::string> op_names_;
  std::vector<bool> made_;  // problem value -> an op makes it
};

}  // namespace

bool is_elsewhere(const PlanOptions& options) {
  return options.costs != nullptr && options.costs->model && options.costs->model->separate_memory;
}
const kernels::Registry& registry_of(const device::Device& device, const PlanOptions& options) {
  const kernels::Registry* const any = device.kernels().any_machine;
  return is_elsewhere(options) && any != nullptr ? *any : device.kernels();
}

Lowered lower(const LowerFrom& from, device::Device& device, const PlanOptions& options) {
  require(from.joint != nullptr, Code::kInternal, "lower() needs the joint graph");
  const bool modelled = options.costs != nullptr && options.costs->model;
  const bool elsewhere = is_elsewhere(options);
  Lowered plan;
  plan.joint = from.joint;
  plan.layout = from.layout;
  plan.index_in_set = from.index_in_set;
  plan.costs = options.costs;
  plan.threads =
      elsewhere
          ? 1
          : device.info().threads;  // a plan for a device that is not present is the same on every machine
  plan.registry = &registry_of(device, options);
  plan.host_in_reach = device.info().host_reaches && !options.forced.update_on_device && !elsewhere;
  plan.device = modelled ? "a model of " + options.costs->model->name : device.info().name;
  return end_gradients(Lowering(std::move(plan), device, options).run(), options);
}

}  // namespace cairn::engine
