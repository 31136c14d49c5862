#include "runtime/compile/set.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/compile/in_place.h"
#include "runtime/compile/program_writer.h"
#include "runtime/compile/regions/region_policies.h"
#include "runtime/compile/residency/homes.h"
#include "runtime/compile/tiles/tiles.h"
#include "runtime/compile/update/offloaded_state.h"

namespace cairn::engine {
namespace {

using graph::JointGraph;

// The later graph's parameters and statistics are the first one's, which checkpoints hold; a cache may be its own.
void check_parameters(const ProgramGraph& first, const ProgramGraph& other) {
  for (const graph::Value& value : other.graph->values()) {
    if (value.kind == graph::ValueKind::kInput || value.kind == graph::ValueKind::kActivation) continue;
    const graph::ValueId id = first.graph->find(value.name);
    if (value.kind == graph::ValueKind::kCache && id == graph::kNone) continue;
    const std::string_view what = graph::value_kind_name(value.kind);
    require(id != graph::kNone && first.graph->values()[at(id)].kind == value.kind, Code::kInvalidArgument,
            "program '", other.name, "' has a ", what, " '", value.name, "', which '", first.name,
            "' does not have; programs on one store have the parameters and statistics of the first");
    const graph::Value& known = first.graph->values()[at(id)];
    require(known.desc == value.desc, Code::kInvalidArgument, what, " '", value.name, "' is ",
            to_string(value.desc), " in program '", other.name, "' and ", to_string(known.desc), " in '",
            first.name, "'; programs on one store have the same ", what, "s");
    require(
        known.parameter.frozen == value.parameter.frozen && known.parameter.decay == value.parameter.decay,
        Code::kInvalidArgument, "parameter '", value.name, "' is frozen or takes weight decay in one of '",
        other.name, "' and '", first.name, "', not in both");
  }
}

// An effective batch may sum gradients over micro-batches of any of these graphs, so they must have the same ones.
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
  for (const auto& [one, another] : {std::pair(&first, &other), {&other, &first}})
    for (const graph::Resident& resident : one->residents)
      require(resident.role != graph::Role::kSum || another->find(resident.name) >= 0, Code::kInvalidArgument,
              "'", resident.name, "' is summed up in one of '", graphs[0].name, "' and '", graphs[i].name,
              "', not in both; programs that train on one store move the same statistics");
}

// Each program has its own inputs and outputs. All other persistent values are shared by name.
std::shared_ptr<StoreLayout> make_layout(std::span<const ProgramGraph> graphs,
                                         const std::vector<std::shared_ptr<const JointGraph>>& joints) {
  auto layout = std::make_shared<StoreLayout>();
  layout->plans = joints.size();
  std::map<std::string, int32_t> known;
  for (size_t i = 0; i < joints.size(); ++i) {
    std::vector<int32_t> entry_of(joints[i]->values.size(), -1);
    for (size_t v = 0; v < entry_of.size(); ++v) {
      const graph::JointValue& value = joints[i]->values[v];
      if (value.alias_of >= 0 || !graph::kind(value.role).is(graph::PERSISTS)) continue;
      const std::string own = cat(value.name, '@', graphs[i].name);
      std::string name = graph::kind(value.role).is(graph::SHARED) ? value.name : own;
      const auto found = known.find(name);
      if (found != known.end() &&
          !(layout->values[at(found->second)].desc == value.desc &&
            layout->values[at(found->second)].desc.packed_bytes == value.desc.packed_bytes))
        name = own;  // a weight that this program packs in another layout
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

// Nothing: no plan fits the budget, and `over` says why.
std::optional<Planned> solved(Lowered lowered, std::optional<Error>& over) {
  try {
    plan::Plan plan = plan::solve(lowered.problem);
    return Planned(std::move(lowered), std::move(plan));
  } catch (const Error& error) {
    if (error.code() != Code::kOverBudget) throw;
    over = error;
    return {};
  }
}

// The faster of the plans with and without ops in place, of those that fit. Without a budget, the smaller.
Planned solve(const Lowered& lowered) {
  std::optional<Error> over;
  std::optional<Planned> apart = solved(lowered, over), paired;
  if (std::optional<Lowered> pairs = with_in_place(lowered)) paired = solved(std::move(*pairs), over);
  if (!apart && !paired) throw *over;
  if (!paired) return std::move(*apart);
  if (!apart) return std::move(*paired);
  const bool better = lowered.problem.budget_bytes == 0
                          ? paired->plan.arena_bytes < apart->plan.arena_bytes
                          : paired->plan.predicted_seconds < apart->plan.predicted_seconds;
  return std::move(better ? *paired : *apart);
}

// With rows in as few tiles as let a plan fit where none does without.
Planned solve_with_tiles(const Lowered& lowered, device::Device& device, const PlanOptions& options) {
  int64_t most = 1;
  for (int64_t count = 2;; count *= 2) try {
      if (count == 2) return solve(lowered);
      const std::optional<Lowered> tiled = with_tiles(lowered, device, options, count / 2);
      return solve(tiled ? *tiled : lowered);
    } catch (const Error& error) {
      const std::optional<Lowered> next = with_tiles(lowered, device, options, count);
      if (error.code() != Code::kOverBudget || !next || most_tiles(*next) <= most) throw;
      most = most_tiles(*next);
    }
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

Lowered SetCompiler::lowered(const Joints& joints, std::shared_ptr<const StoreLayout> layout,
                             size_t i) const {
  return lower({joints[i], std::move(layout), i}, device_, options_);
}

std::vector<Lowered> SetCompiler::lower_all(const graph::JointOptions& joint) {
  const Joints joints = derive_all(joint);
  std::shared_ptr<StoreLayout> layout;
  if (joints.size() > 1) layout = make_layout(graphs_, joints);
  joints_[layout.get()] = joints;
  std::vector<Lowered> plans;
  for (size_t i = 0; i < joints.size(); ++i) plans.push_back(lowered(joints, layout, i));
  choose_primary(plans);
  if (layout != nullptr) layout->primary = primary_;
  return plans;
}

Lowered SetCompiler::lower_primary(const graph::JointOptions& joint) {
  const Joints joints = derive_all(joint);
  std::shared_ptr<StoreLayout> layout;
  if (joints.size() > 1) {
    layout = make_layout(graphs_, joints);
    layout->primary = primary_;
  }
  joints_[layout.get()] = joints;
  return lowered(joints, layout, primary_);
}

PartUnits SetCompiler::part_units(const graph::JointOptions& joint) const {
  if (options_.fuse_update || is_elsewhere(options_)) return {};
  return engine::part_units(derive_all(joint), device_.kernels(), device_.info().threads);
}

void SetCompiler::choose_primary(std::span<const Lowered> plans) {
  int64_t most = -1;
  for (size_t i = 0; i < plans.size() && plans.size() > 1; ++i) {
    if (plans[0].joint->forward->trains() && !plans[i].joint->forward->trains()) continue;
    plan::Problem free = plans[i].problem;
    free.budget_bytes = 0;
    const int64_t bytes = plan::solve(free).arena_bytes;
    if (bytes <= most) continue;
    most = bytes;
    primary_ = i;
  }
}

// The problem of another plan of the set, without what the primary plan offloads.
Lowered SetCompiler::like_primary(const CompiledPlan& primary, size_t i, int64_t budget_bytes) const {
  const StoreLayout& layout = *primary.layout;
  Lowered plan = lowered(joints_.at(&layout), primary.layout, i);
  plan.problem.budget_bytes = budget_bytes;
  std::map<int32_t, const OffloadedPlace*> offloaded;  // by entry
  for (const auto& [value, place] : primary.offloaded)
    offloaded[layout.entry_of[primary_][at(value)]] = &place;
  std::vector<bool> gone(plan.problem.values.size());
  for (const auto& [entry, place] : offloaded)
    if (plan.layout_value[at(entry)] >= 0) gone[at(plan.layout_value[at(entry)])] = true;
  for (size_t v = 0; v < plan.problem_value.size(); ++v) {
    const int32_t entry = layout.entry_of[i][v];
    if (entry >= 0 && offloaded.contains(entry))
      plan.offloaded[static_cast<int32_t>(v)] = *offloaded.at(entry);
  }
  for (const auto& [value, place] : plan.offloaded) plan.problem_value[at(value)] = -1;
  plan = with_residencies_of(primary, without_values(std::move(plan), gone));
  for (size_t link = 0; link < plan.link_tier.size(); ++link)
    plan.problem.links[link].capacity_bytes -=
        primary.offloaded_bytes[static_cast<size_t>(plan.link_tier[link])];
  return plan;
}

std::vector<std::shared_ptr<const CompiledPlan>> SetCompiler::with_others(
    std::shared_ptr<const CompiledPlan> primary, int64_t budget_bytes) {
  if (primary->layout == nullptr) return {primary};
  std::vector<std::shared_ptr<const CompiledPlan>> plans(graphs_.size());
  plans[primary_] = primary;
  for (size_t i = 0; i < graphs_.size(); ++i) {
    if (i == primary_) continue;
    named(i, [&] {
      plans[i] = std::make_shared<const CompiledPlan>(assemble_with(
          *primary, solve_with_tiles(like_primary(*primary, i, budget_bytes), device_, options_)));
    });
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

CompiledPlan assemble_with(const CompiledPlan& primary, Planned planned) {
  Placed placed(std::move(planned));
  placed.offloaded_bytes = primary.offloaded_bytes;
  CompiledPlan plan(std::move(placed));
  const std::vector<int32_t>& entry_of = plan.layout->entry_of[plan.index_in_set];
  const std::vector<int32_t>& made = plan.layout->entry_of[primary.index_in_set];
  const JointGraph& joint = *plan.joint;
  const auto operand = [&](int32_t value) {
    const Where place = plan.where(value, Point::kBetween);
    require(place.on_device() && place.offset >= 0, Code::kUnsupported, "'", joint.values[at(value)].name,
            "' is packed in a layout of its own by one program of the store, and is not kept on the device");
    return Operand{joint.values[at(value)].desc, place.offset};
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
  plan.program() = micro_batch_program(plan);
  plan.kernel_locks = std::make_unique<std::mutex[]>(plan.kernels.size());
  return plan;
}

}  // namespace cairn::engine
