// Chapter 4: plan.
#include "capi/src/plan.h"

#include <cstdlib>

#include "capi/src/costs.h"
#include "capi/src/graph.h"
#include "capi/src/optimizers.h"
#include "capi/src/structs.h"
#include "capi/src/text.h"
#include "runtime/compile/residency/tier_memory.h"
#include "runtime/plan/explain.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
using cairn::Tier;
namespace engine = cairn::engine;
namespace plan = cairn::plan;

static_assert(CAIRN_AMP_FP16 == static_cast<int>(cairn::graph::AmpMode::kFp16));
static_assert(CAIRN_DECISION_PERSISTENT == static_cast<int>(plan::Decision::kPersistent));

namespace {

// As the summary counts them: whatever is neither of a weight nor of its update.
std::vector<bool> activations_of(const engine::CompiledPlan& compiled) {
  std::vector<bool> activations(compiled.problem.values.size(), true);
  for (size_t j = 0; j < compiled.joint->values.size(); ++j) {
    const int32_t p = compiled.problem_value[j];
    if (p >= 0 &&
        cairn::graph::kind(compiled.joint->values[j].role).counted != cairn::graph::Counted::kActivations)
      activations[p] = false;
  }
  return activations;
}

}  // namespace

cairn_plan::cairn_plan(std::shared_ptr<const engine::CompiledPlan> from,
                       const cairn::device::DeviceInfo& device)
    : compiled(std::move(from)), sustained(cairn::costs::Model(device, compiled->costs).sustained()) {
  const plan::Problem& problem = compiled->problem;
  category.assign(problem.values.size(), "activation");
  region.assign(problem.values.size(), -1);
  for (size_t j = 0; j < compiled->joint->values.size(); ++j)
    if (const int32_t p = compiled->problem_value[j]; p >= 0)
      category[p] = cairn::graph::kind(compiled->joint->values[j].role).name.data();
  for (const plan::Op& op : problem.ops)
    for (int32_t value : op.outputs) region[value] = op.region;
  activation_peak_bytes = plan::activation_peak(problem, compiled->plan, activations_of(*compiled));
}

namespace {

std::vector<Tier> read_tiers(const cairn_plan_options_t& o) {
  require(o.tier_count <= 4, Code::kInvalidArgument, "options.tier_count is ", o.tier_count,
          "; at most 4 are allowed");
  std::vector<Tier> tiers;
  for (uint32_t i = 0; i < o.tier_count; ++i) {
    require(o.tiers[i] == CAIRN_TIER_HOST || o.tiers[i] == CAIRN_TIER_DISK, Code::kInvalidArgument,
            "options.tiers[", i, "] is ", o.tiers[i], "; offloading goes to the tiers HOST (1) and DISK (2)");
    const auto tier = static_cast<Tier>(o.tiers[i]);
    require(std::find(tiers.begin(), tiers.end(), tier) == tiers.end(), Code::kInvalidArgument,
            "options.tiers[", i, "] names a tier twice");
    tiers.push_back(tier);
  }
  return tiers;
}

constexpr uint32_t kMaxAmpRules = 65536;  // more is a mistake

std::vector<cairn::graph::AmpRule> read_amp_rules(const cairn_plan_options_t& o) {
  if (o.amp_rule_count > 0) not_null(o.amp_rules, "options.amp_rules");
  require(o.amp_rule_count <= kMaxAmpRules, Code::kInvalidArgument, "options.amp_rules: ", o.amp_rule_count,
          " are more than ", kMaxAmpRules);
  std::vector<cairn::graph::AmpRule> rules;
  for (uint32_t i = 0; i < o.amp_rule_count; ++i) {
    const cairn_amp_rule_t& rule = o.amp_rules[i];
    not_null(rule.amp_class, cairn::cat("options.amp_rules[", i, "].amp_class"));
    rules.push_back({.op = rule.op == nullptr ? "" : rule.op,
                     .region = rule.region == nullptr ? "" : rule.region,
                     .amp_class = rule.amp_class});
  }
  return rules;
}

constexpr uint32_t kMaxFormats = 65536;  // more is a mistake

std::vector<cairn::graph::FormatRule> read_formats(const cairn_plan_options_t& o) {
  if (o.format_count > 0) not_null(o.formats, "options.formats");
  require(o.format_count <= kMaxFormats, Code::kInvalidArgument, "options.formats: ", o.format_count,
          " are more than ", kMaxFormats);
  reserved_zero(o.reserved2, "options");
  std::vector<cairn::graph::FormatRule> rules;
  for (uint32_t i = 0; i < o.format_count; ++i) {
    not_null(o.formats[i].pattern, cairn::cat("options.formats[", i, "].pattern"));
    not_null(o.formats[i].format, cairn::cat("options.formats[", i, "].format"));
    rules.push_back({o.formats[i].pattern, o.formats[i].format});
  }
  return rules;
}

constexpr uint32_t kMaxRegionPolicies = 65536;  // more is a mistake

std::vector<engine::RegionPolicy> read_region_policies(const cairn_plan_options_t& o) {
  if (o.region_policy_count > 0) not_null(o.region_policies, "options.region_policies");
  require(o.region_policy_count <= kMaxRegionPolicies, Code::kInvalidArgument,
          "options.region_policies: ", o.region_policy_count, " are more than ", kMaxRegionPolicies);
  std::vector<engine::RegionPolicy> rows;
  for (uint32_t i = 0; i < o.region_policy_count; ++i) {
    const cairn_region_policy_t& row = o.region_policies[i];
    const std::string name = cairn::cat("options.region_policies[", i, "]");
    not_null(row.pattern, name + ".pattern");
    in_enum(row.policy, CAIRN_REGION_OFFLOAD, name + ".policy");
    in_enum(row.tier, CAIRN_TIER_DISK, name + ".tier");
    engine::RegionPolicy policy{row.pattern, static_cast<cairn::Policy>(row.policy)};
    if (row.tier != 0) policy.tier = static_cast<Tier>(row.tier);
    rows.push_back(std::move(policy));
  }
  return rows;
}

engine::PlanOptions read_plan(const cairn_plan_options_t* given, const cairn_device& device) {
  const cairn_plan_options_t o = read_struct(given, CAIRN_PLAN_OPTIONS_INIT, "options");
  require(o.budget_bytes <= INT64_MAX, Code::kInvalidArgument, "options.budget_bytes is ", o.budget_bytes,
          "; at most 2^63 - 1 is allowed");
  not_negative(o.budget_share, "options.budget_share");
  require(o.budget_share <= 1, Code::kInvalidArgument, "options.budget_share is ", o.budget_share,
          "; at most 1, all that keeping everything takes, is allowed");
  not_negative(o.link_bytes_per_second, "options.link_bytes_per_second");
  in_enum(o.amp, CAIRN_AMP_FP16, "options.amp");
  flag(o.no_optimizer, "options.no_optimizer");
  in_enum(o.policy, CAIRN_REGION_OFFLOAD, "options.policy");
  flag(o.force_costs, "options.force_costs");
  reserved_zero(o.reserved, "options");
  require(o.parameters <= CAIRN_BF16 || o.parameters == CAIRN_SPLIT, Code::kInvalidArgument,
          "options.parameters is ", o.parameters,
          "; it must be CAIRN_F32 (0), CAIRN_BF16 (1) or CAIRN_SPLIT (10)");
  flag(o.fuse_update, "options.fuse_update");
  flag(o.smallest_budget, "options.smallest_budget");
  not_negative(o.ema, "options.ema");
  const bool named = o.budget_share <= 0 && o.smallest_budget == 0;
  return {.budget_bytes = named ? static_cast<int64_t>(o.budget_bytes) : 0,
          .smallest_budget = o.smallest_budget != 0,
          .budget_share = o.budget_share,
          .amp = static_cast<cairn::graph::AmpMode>(o.amp),
          .amp_rules = read_amp_rules(o),
          .parameters = static_cast<cairn::DType>(o.parameters),
          .formats = read_formats(o),
          .optimizer = read_optimizer(o),
          .policy = static_cast<cairn::Policy>(o.policy),
          .region_policies = read_region_policies(o),
          .tiers = read_tiers(o),
          .link_bytes_per_second = o.link_bytes_per_second,
          .costs = o.costs == nullptr ? rates_of(device) : o.costs->whole(),
          .force_costs = o.force_costs != 0,
          .micro_steps = o.micro_steps,
          .fuse_update = o.fuse_update != 0};
}

// Asks the machine what the plans need to know of it.
std::vector<std::shared_ptr<const engine::CompiledPlan>> compiled(
    std::span<const engine::ProgramGraph> graphs, const cairn_plan_options_t* given,
    const cairn_device& device) {
  engine::PlanOptions options = read_plan(given, device);
  options.machine = cairn::costs::find_machine_facts(device.device->info(), options.costs.get(),
                                                     engine::may_use_disk(graphs, options), device.rates);
  return engine::compile_set(graphs, *device.device, options);
}

constexpr size_t kMaxPrograms = 4096;  // more is a mistake

uint64_t u(int64_t bytes) { return static_cast<uint64_t>(bytes); }

// What lives in a tier and is no value of the problem. A gradient whose parts are there stands in no row of its own.
std::vector<int32_t> offloaded_values(const engine::CompiledPlan& c) {
  std::vector<int32_t> values;
  for (const auto& [value, place] : c.offloaded)
    if (c.joint->slices_of(value) == nullptr) values.push_back(value);
  return values;
}

cairn_plan_summary_t summary_of(const cairn_plan& handle) {
  const engine::CompiledPlan& c = *handle.compiled;
  const plan::Plan& p = c.plan;
  cairn_plan_summary_t s = CAIRN_PLAN_SUMMARY_INIT;
  for (const Tier tier : {Tier::kDevice, Tier::kHost, Tier::kDisk})
    s.peak_bytes[static_cast<size_t>(tier)] = u(engine::tier_peak_bytes(c, tier));
  for (size_t link = 0; link < c.link_tier.size(); ++link)
    (c.link_tier[link] == Tier::kHost ? s.offload_host_bytes : s.offload_disk_bytes) +=
        u(p.totals.offload_bytes[link]);
  s.optimizer_host_bytes = u(engine::optimizer_bytes(c, Tier::kHost));
  s.optimizer_disk_bytes = u(engine::optimizer_bytes(c, Tier::kDisk));
  s.budget_bytes = u(p.budget_bytes);
  s.live_peak_bytes = u(p.device_peak_bytes);
  s.persistent_bytes = u(c.problem.persistent_bytes());
  const engine::CompiledPlan::Memory memory = c.memory_at_peak();
  s.parameters_bytes = u(memory.parameters);
  s.gradients_bytes = u(memory.gradients);
  s.optimizer_bytes = u(memory.optimizer);
  s.activations_bytes = u(memory.activations);
  s.workspace_bytes = u(memory.workspace);
  s.activation_peak_bytes = u(handle.activation_peak_bytes);
  s.keep_bytes = u(p.totals.keep_bytes);
  s.recompute_bytes = u(p.totals.recompute_bytes);
  s.predicted_seconds = p.predicted_seconds;
  s.keep_all_seconds = p.keep_all_seconds;
  s.bound_seconds = p.bound_seconds;
  s.gap = p.gap;
  s.solve_seconds = p.solve_seconds;
  s.value_count = c.problem.values.size() + offloaded_values(c).size();
  s.op_count = c.problem.ops.size();
  s.instruction_count = c.program().code.size();
  s.region_count = c.problem.regions.size();
  s.update_seconds = c.update_seconds;
  s.host_seconds = c.host_seconds;
  return s;
}

// The host's processors change it: a weight or a state.
bool on_host(const engine::CompiledPlan& c, int32_t value) {
  using cairn::graph::Role;
  const auto& residents = c.joint->residents;
  return std::any_of(residents.begin(), residents.end(), [&](const auto& resident) {
    return resident.value == value &&
           (resident.role == Role::kParameter || resident.role == Role::kOptimizer) &&
           c.host_updated.contains(c.joint->parameters[static_cast<size_t>(resident.owner)].value);
  });
}

cairn_plan_value_t offloaded_row(const engine::CompiledPlan& c, int32_t value) {
  const cairn::graph::JointValue& from = c.joint->values[static_cast<size_t>(value)];
  const Tier tier = c.offloaded.at(value).tier;
  cairn_plan_value_t v = CAIRN_PLAN_VALUE_INIT;
  v.name = from.name.c_str();
  v.region = "";
  const bool host = tier == Tier::kHost, there = on_host(c, value);
  v.reason = c.where(value, engine::Point::kDeviceUpdate).in_place() || (host && there)
                 ? "offloaded to the host, updated in place"
             : host  ? "offloaded to the host, copied to the device for every update"
             : there ? "offloaded to the disk, copied to the host for every update"
                     : "offloaded to the disk, copied to the device for every update";
  v.category = cairn::graph::kind(from.role).name.data();
  v.bytes = u(cairn::align_up(from.desc.bytes(), cairn::kAlignment));
  v.offset_bytes = -1;
  v.decision = CAIRN_DECISION_PERSISTENT;
  v.tier = static_cast<uint32_t>(tier);
  v.first_step = v.last_step = -1;
  return v;
}

}  // namespace

cairn_status_t cairn_plan_create(cairn_graph_t* graph, cairn_device_t* device,
                                 const cairn_plan_options_t* options, cairn_plan_t** out_plan,
                                 cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    not_null(device, "device");
    not_null(out_plan, "out_plan");
    require(graph->graph->frozen(), Code::kWrongState,
            "the graph is still being built; a plan needs a frozen one");
    const engine::ProgramGraph alone{"", graph->graph};
    auto plans = compiled({&alone, 1}, options, *device);
    *out_plan = std::make_unique<cairn_plan>(std::move(plans[0]), device->device->info()).release();
  });
}
cairn_status_t cairn_plan_create_set(const cairn_program_t* programs, size_t count, cairn_device_t* device,
                                     const cairn_plan_options_t* options, cairn_plan_t** out_plans,
                                     cairn_error_t* error) {
  return guard(error, [&] {
    not_null(programs, "programs");
    not_null(device, "device");
    not_null(out_plans, "out_plans");
    require(count > 0 && count <= kMaxPrograms, Code::kInvalidArgument, "count is ", count,
            "; it must be from 1 to ", kMaxPrograms);
    std::vector<engine::ProgramGraph> graphs;
    for (size_t i = 0; i < count; ++i) {
      not_null(programs[i].name, cairn::cat("programs[", i, "].name"));
      not_null(programs[i].graph, cairn::cat("programs[", i, "].graph"));
      require(programs[i].graph->graph->frozen(), Code::kWrongState, "the graph of program '",
              programs[i].name, "' is still being built; a plan needs a frozen one");
      graphs.push_back({programs[i].name, programs[i].graph->graph});
    }
    std::vector<std::unique_ptr<cairn_plan>> made;
    for (auto& plan : compiled(graphs, options, *device))
      made.push_back(std::make_unique<cairn_plan>(std::move(plan), device->device->info()));
    for (size_t i = 0; i < count; ++i) out_plans[i] = made[i].release();
  });
}
void cairn_plan_retain(cairn_plan_t* plan) { retain(plan); }
void cairn_plan_release(cairn_plan_t* plan) { release(plan); }

cairn_status_t cairn_plan_summary(const cairn_plan_t* plan, cairn_plan_summary_t* out_summary,
                                  cairn_error_t* error) {
  return guard(error, [&] {
    not_null(plan, "plan");
    const OutStruct out(out_summary, "out_summary");
    out.write(summary_of(*plan));
  });
}

cairn_status_t cairn_plan_memory(const cairn_plan_t* plan, uint32_t tier, cairn_plan_memory_t* out_memory,
                                 cairn_error_t* error) {
  return guard(error, [&] {
    not_null(plan, "plan");
    in_enum(tier, CAIRN_TIER_DISK, "tier");
    const OutStruct out(out_memory, "out_memory");
    const engine::CompiledPlan::Memory memory = engine::tier_memory(*plan->compiled, static_cast<Tier>(tier));
    cairn_plan_memory_t m = CAIRN_PLAN_MEMORY_INIT;
    m.parameters_bytes = u(memory.parameters);
    m.gradients_bytes = u(memory.gradients);
    m.optimizer_bytes = u(memory.optimizer);
    m.activations_bytes = u(memory.activations);
    m.workspace_bytes = u(memory.workspace);
    m.peak_at = engine::peak_at(*plan->compiled, static_cast<Tier>(tier));
    out.write(m);
  });
}

cairn_status_t cairn_plan_value(const cairn_plan_t* plan, size_t index, cairn_plan_value_t* out_value,
                                cairn_error_t* error) {
  return guard(error, [&] {
    not_null(plan, "plan");
    const OutStruct out(out_value, "out_value");
    const engine::CompiledPlan& c = *plan->compiled;
    if (index >= c.problem.values.size()) {
      const std::vector<int32_t> offloaded = offloaded_values(c);
      const size_t rows = c.problem.values.size() + offloaded.size();
      require(index < rows, Code::kNotFound, "there is no row ", index, "; the plan has ", rows);
      return out.write(offloaded_row(c, offloaded[index - c.problem.values.size()]));
    }
    const plan::ValuePlan& row = c.plan.values[index];
    const bool persistent = row.decision == plan::Decision::kPersistent;
    const int32_t region = plan->region[index];
    cairn_plan_value_t v = CAIRN_PLAN_VALUE_INIT;
    v.name = c.problem.values[index].name.c_str();
    v.region = region < 0 ? "" : c.problem.regions[region].name.c_str();
    v.reason = row.reason.c_str();
    v.category = plan->category[index];
    v.bytes = u(c.problem.values[index].bytes);
    v.offset_bytes = persistent ? c.plan.value_offsets[index] : row.offset;
    v.decision = static_cast<uint32_t>(row.decision);
    v.tier = static_cast<uint32_t>(row.tier < 0 ? Tier::kDevice : c.link_tier[row.tier]);
    v.first_step = row.first_step;
    v.last_step = row.last_step;
    out.write(v);
  });
}

cairn_status_t cairn_plan_op(const cairn_plan_t* plan, size_t index, cairn_plan_op_t* out_op,
                             cairn_error_t* error) {
  return guard(error, [&] {
    not_null(plan, "plan");
    const OutStruct out(out_op, "out_op");
    const cairn::graph::JointGraph& joint = *plan->compiled->joint;
    const cairn::graph::Graph& graph = *joint.forward;
    require(index < graph.ops().size(), Code::kNotFound, "there is no op ", index, "; the graph has ",
            graph.ops().size());
    const cairn::graph::Op& op = graph.ops()[index];
    cairn_plan_op_t row = CAIRN_PLAN_OP_INIT;
    row.name = op.name.c_str();
    row.op = cairn::graph::op_name(graph, op).data();
    row.region = op.region < 0 ? "" : graph.regions()[static_cast<size_t>(op.region)].name.c_str();
    row.amp_class = cairn::ops::name(joint.amp_choices[index].amp_class).data();
    row.amp_rule = joint.amp_choices[index].rule;
    out.write(row);
  });
}

cairn_status_t cairn_plan_render(const cairn_plan_t* plan, uint32_t kind, const char* title,
                                 cairn_text_t** out_text, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(plan, "plan");
    not_null(out_text, "out_text");
    const engine::CompiledPlan& c = *plan->compiled;
    *out_text = std::make_unique<cairn_text>(
                    render(c.problem, c.plan, kind, title, plan->category, c.other_form.get()))
                    .release();
  });
}

cairn_status_t cairn_problem_solve(cairn_instance_t* instance, const char* json, size_t size,
                                   uint64_t budget_bytes, uint32_t kind, cairn_text_t** out_text,
                                   cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    array_not_null(json, size, "json");
    not_null(out_text, "out_text");
    in_enum(kind, CAIRN_RENDER_REPORT, "kind");
    require(budget_bytes <= INT64_MAX, Code::kInvalidArgument, "argument 'budget_bytes' is ", budget_bytes,
            "; at most 2^63 - 1 is allowed");
    plan::Problem problem = plan::problem_from_json({json, size});
    if (budget_bytes != 0) problem.budget_bytes = static_cast<int64_t>(budget_bytes);
    *out_text =
        std::make_unique<cairn_text>(render(problem, plan::solve(problem), kind, nullptr, {})).release();
  });
}
