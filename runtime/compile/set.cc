#include "runtime/compile/set.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/compile/homes/homes.h"
#include "runtime/compile/in_place.h"
#include "runtime/compile/program_writer.h"
#include "runtime/compile/regions/region_policies.h"
#include "runtime/compile/update/offloaded_state.h"

namespace cairn::engine {
namespace {

using graph::JointGraph;
using graph::Role;

// The later graph's parameters are the first one's.
void check_parameters(const ProgramGraph& first, const ProgramGraph& other) {
  for (const graph::Value& value : other.graph->values()) {
    if (value.kind != graph::ValueKind::kParameter) continue;
    const graph::ValueId id = first.graph->find(value.name);
    require(id != graph::kNone && first.graph->values()[at(id)].kind == graph::ValueKind::kParameter,
            Code::kInvalidArgument, "program '", other.name, "' has a parameter '", value.name, "', which '",
            first.name, "' does not have; programs on one store have the parameters of the first");
    const graph::Value& known = first.graph->values()[at(id)];
    require(known.desc == value.desc, Code::kInvalidArgument, "parameter '", value.name, "' is ",
            to_string(value.desc), " in program '", other.name, "' and ", to_string(known.desc), " in '",
            first.name, "'; programs on one store have the same parameters");
    require(
        known.parameter.frozen == value.parameter.frozen && known.parameter.decay == value.parameter.decay,
        Code::kInvalidArgument, "parameter '", value.name, "' is frozen or takes weight decay in one of '",
        other.name, "' and '", first.name, "', not in both");
  }
}

// Gradients of an effective batch are sums over micro-batches of any of these graphs.
void check_gradients(const JointGraph& first, const JointGraph& other, std::span<const ProgramGraph> graphs,
                     size_t i) {
  if (!other.forward->trains()) return;
  require(first.forward->trains(), Code::kInvalidArgument, "program '", graphs[i].name,
          "' trains, and the first, '", graphs[0].name, "', does not: name one that trains first");
  const auto has_gradient = [](const JointGraph& joint, const std::string& name) {
    for (const graph::ParameterSlot& slot : joint.parameters)
      if (joint.forward->values()[at(slot.source)].name == name) return slot.gradient >= 0;
    return false;
  };
  for (const graph::ParameterSlot& slot : first.parameters) {
    const std::string& name = first.forward->values()[at(slot.source)].name;
    require((slot.gradient >= 0) == has_gradient(other, name), Code::kInvalidArgument, "parameter '", name,
            "' gets a gradient in one of '", graphs[0].name, "' and '", graphs[i].name,
            "', not in both; programs that train on one store have the same gradients");
  }
}

// Inputs and outputs are each program's own; everything else that persists is shared by name.
std::shared_ptr<StoreLayout> make_layout(std::span<const ProgramGraph> graphs,
                                         const std::vector<std::shared_ptr<const JointGraph>>& joints) {
  auto layout = std::make_shared<StoreLayout>();
  layout->plans = joints.size();
  std::map<std::string, int32_t> known;
  for (size_t i = 0; i < joints.size(); ++i) {
    std::vector<int32_t> entry_of(joints[i]->values.size(), -1);
    for (size_t v = 0; v < entry_of.size(); ++v) {
      const graph::JointValue& value = joints[i]->values[v];
      if (value.alias_of >= 0 || !graph::is_persistent(value.role)) continue;
      const std::string own = cat(value.name, '@', graphs[i].name);
      std::string name = value.role == Role::kInput || value.role == Role::kOutput ? own : value.name;
      const auto found = known.find(name);
      if (found != known.end() &&
          !(layout->values[at(found->second)].desc == value.desc &&
            layout->values[at(found->second)].desc.packed_bytes == value.desc.packed_bytes))
        name = own;  // a pack of another layout
      const auto [entry, fresh] = known.emplace(name, static_cast<int32_t>(layout->values.size()));
      if (fresh) layout->values.push_back({name, value.desc, value.role});
      if (joints[i]->slices_of(static_cast<int32_t>(v)) != nullptr)
        layout->values[at(entry->second)].sliced = true;
      entry_of[v] = entry->second;
    }
    layout->entry_of.push_back(std::move(entry_of));
  }
  return layout;
}

// False: over the budget, as `over` says.
bool fits(CompiledPlan& plan, std::optional<Error>& over) {
  try {
    plan.plan = plan::solve(plan.problem);
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::kOverBudget) throw;
    over = error;
    return false;
  }
}

// The faster of the problem as it is and with ops in place, of those that fit; without a budget, the smaller.
void solve(CompiledPlan& plan) {
  CompiledPlan pairs = plan;
  std::optional<Error> over;
  const bool apart = fits(plan, over), paired = make_in_place(pairs) > 0 && fits(pairs, over);
  if (!apart && !paired) throw *over;
  const bool better = plan.problem.budget_bytes == 0
                          ? pairs.plan.arena_bytes < plan.plan.arena_bytes
                          : pairs.plan.predicted_seconds < plan.plan.predicted_seconds;
  if (paired && (!apart || better)) plan = std::move(pairs);
}

}  // namespace

SetCompiler::SetCompiler(std::span<const ProgramGraph> graphs, device::Device& device,
                         const PlanOptions& options)
    : graphs_(graphs), device_(device), options_(options) {
  require(!graphs.empty(), Code::kInvalidArgument, "a store needs a program");
  for (size_t i = 1; i < graphs.size(); ++i) {
    require(graphs[i].graph != nullptr && graphs[i].graph->frozen(), Code::kWrongState,
            "the graph of program '", graphs[i].name, "' is not frozen");
    for (size_t j = 0; j < i; ++j)
      require(graphs[j].name != graphs[i].name, Code::kInvalidArgument, "two programs are called '",
              graphs[i].name, "'");
    check_parameters(graphs[0], graphs[i]);
  }
  std::vector<const graph::Graph*> all;
  for (const ProgramGraph& program : graphs)
    if (program.graph != nullptr) all.push_back(program.graph.get());
  graph::check_amp_rules(all, options.amp_rules);
  graph::check_format_rules(all, options.formats);
  options_.region_policies = resolved_region_policies(all, options);
}

SetCompiler::Joints SetCompiler::derive_all(const graph::JointOptions& joint) const {
  Joints joints;
  for (const ProgramGraph& program : graphs_) joints.push_back(graph::derive(program.graph, joint));
  for (size_t i = 1; i < joints.size(); ++i) check_gradients(*joints[0], *joints[i], graphs_, i);
  return joints;
}

std::shared_ptr<CompiledPlan> SetCompiler::lowered(const Joints& joints,
                                                   std::shared_ptr<const StoreLayout> layout, size_t i) {
  auto plan = std::make_shared<CompiledPlan>();
  plan->joint = joints[i];
  plan->layout = std::move(layout);
  plan->index_in_set = i;
  plan->costs = options_.costs;
  lower(*plan, device_, options_);
  return plan;
}

std::vector<std::shared_ptr<CompiledPlan>> SetCompiler::lower_all(const graph::JointOptions& joint) {
  const Joints joints = derive_all(joint);
  std::shared_ptr<StoreLayout> layout;
  if (joints.size() > 1) layout = make_layout(graphs_, joints);
  joints_[layout.get()] = joints;
  std::vector<std::shared_ptr<CompiledPlan>> plans;
  for (size_t i = 0; i < joints.size(); ++i) plans.push_back(lowered(joints, layout, i));
  choose_primary(plans);
  if (layout != nullptr) layout->primary = primary_;
  return plans;
}

std::vector<std::shared_ptr<CompiledPlan>> SetCompiler::lower_all(const graph::JointOptions& joint,
                                                                  size_t only) {
  const Joints joints = derive_all(joint);
  std::shared_ptr<StoreLayout> layout;
  if (joints.size() > 1) {
    layout = make_layout(graphs_, joints);
    layout->primary = only;
  }
  joints_[layout.get()] = joints;
  return {lowered(joints, layout, only)};
}

PartUnits SetCompiler::part_units(const graph::JointOptions& joint) const {
  if (options_.fuse_update || is_elsewhere(options_)) return {};
  return engine::part_units(derive_all(joint), device_.kernels(), device_.info().threads);
}

void SetCompiler::choose_primary(std::span<const std::shared_ptr<CompiledPlan>> plans) {
  int64_t most = -1;
  for (size_t i = 0; i < plans.size() && plans.size() > 1; ++i) {
    if (plans[0]->joint->forward->trains() && !plans[i]->joint->forward->trains()) continue;
    plan::Problem free = plans[i]->problem;
    free.budget_bytes = 0;
    const int64_t bytes = plan::solve(free).arena_bytes;
    if (bytes <= most) continue;
    most = bytes;
    primary_ = i;
  }
}

std::vector<std::shared_ptr<const CompiledPlan>> SetCompiler::beside(
    std::shared_ptr<const CompiledPlan> primary, int64_t budget_bytes) {
  std::vector<std::shared_ptr<const CompiledPlan>> plans;
  if (primary->layout == nullptr) return {primary};
  const StoreLayout& layout = *primary->layout;
  const std::vector<int32_t>& primary_entry = layout.entry_of[primary_];
  std::map<int32_t, const OffloadedPlace*> offloaded;  // by entry
  for (const auto& [value, place] : primary->offloaded) offloaded[primary_entry[at(value)]] = &place;
  for (size_t i = 0; i < graphs_.size(); ++i) {
    if (i == primary_) {
      plans.push_back(primary);
      continue;
    }
    auto plan = lowered(joints_.at(&layout), primary->layout, i);
    plan->problem.budget_bytes = budget_bytes;
    std::vector<bool> gone(plan->problem.values.size());
    for (const auto& [entry, place] : offloaded)
      if (plan->layout_value[at(entry)] >= 0) gone[at(plan->layout_value[at(entry)])] = true;
    for (size_t v = 0; v < plan->problem_value.size(); ++v) {
      const int32_t entry = layout.entry_of[i][v];
      if (entry >= 0 && offloaded.contains(entry))
        plan->offloaded[static_cast<int32_t>(v)] = *offloaded.at(entry);
    }
    for (const auto& [value, place] : plan->offloaded) plan->problem_value[at(value)] = -1;
    remove_values(*plan, gone);
    plan->offloaded_bytes = primary->offloaded_bytes;
    share_homes(*plan, *primary);
    for (size_t link = 0; link < plan->link_tier.size(); ++link)
      plan->problem.links[link].capacity_bytes -=
          plan->offloaded_bytes[static_cast<size_t>(plan->link_tier[link])];
    named(i, [&] { solve(*plan); });
    assemble_repack(*plan, *primary, device_);
    assemble(*plan);
    plans.push_back(std::move(plan));
  }
  return plans;
}

void SetCompiler::named(size_t i, const std::function<void()>& solve) const {
  try {
    solve();
  } catch (const Error& error) {
    if (graphs_.size() == 1 || error.code() != Code::kOverBudget || error.fault() == nullptr) throw;
    throw Error(error.code(), cat("program '", graphs_[i].name, "': ", error.what()), *error.fault());
  }
}

void assemble_repack(CompiledPlan& plan, const CompiledPlan& primary, device::Device&) {
  const std::vector<int32_t>& entry_of = plan.layout->entry_of[plan.index_in_set];
  const std::vector<int32_t>& made = plan.layout->entry_of[primary.index_in_set];
  const JointGraph& joint = *plan.joint;
  const auto operand = [&](int32_t value) {
    const int32_t stored = plan.problem_value[at(value)];
    require(
        stored >= 0 && plan.problem.values[at(stored)].persistent, Code::kUnsupported, "'",
        joint.values[at(value)].name,
        "' is packed in a layout of its own by one program of the store, and does not stay on the device");
    return Operand{joint.values[at(value)].desc, plan.plan.value_offsets[at(stored)]};
  };
  ProgramWriter writer;
  const std::vector<graph::JointOp>& ops = joint.ops(graph::kRepack);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (std::find(made.begin(), made.end(), entry_of[at(ops[i].out[0])]) != made.end()) continue;
    const Operand in = operand(ops[i].in[0]), out = operand(ops[i].out[0]);
    const int32_t kernel = plan.op_kernel[graph::kRepack][i];
    writer.launch(ops[i], static_cast<int32_t>(i), kernel, {&in, 1}, {&out, 1}, plan.persistent_bytes(),
                  align_up(plan.kernels[at(kernel)]->workspace_bytes(), kAlignment));
  }
  plan.program(graph::kRepack) = writer.take();
  plan.kernel_locks = std::make_unique<std::mutex[]>(plan.kernels.size());
}

}  // namespace cairn::engine
