#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/compile/derived_weights.h"
#include "runtime/compile/in_place.h"
#include "runtime/compile/set.h"
#include "runtime/compile/variants.h"
#include "runtime/costs/model.h"
#include "runtime/graph/effective/sides.h"

namespace cairn::engine {
namespace {

void check_options(const PlanOptions& options) {
  require(options.budget_bytes >= 0, Code::kInvalidArgument,
          "the budget must not be negative: ", options.budget_bytes, " bytes");
  require(std::isfinite(options.budget_share) && options.budget_share >= 0, Code::kInvalidArgument,
          "the budget's share must be a number not below 0: ", options.budget_share);
  require(std::isfinite(options.link_bytes_per_second) && options.link_bytes_per_second >= 0,
          Code::kInvalidArgument, "the link's rate must not be negative: ", options.link_bytes_per_second);
}

const costs::DeviceModel* model_of(const PlanOptions& options) {
  return options.costs != nullptr && options.costs->model ? &*options.costs->model : nullptr;
}

void check_profile(const PlanOptions& options, const device::DeviceInfo& info) {
  if (options.costs == nullptr || !options.costs->profile || options.force_costs) return;
  const std::string differs = costs::difference(options.costs->profile->machine, costs::machine_of(info));
  require(differs.empty(), Code::kInvalidArgument, "the profile was measured on another machine: ", differs,
          "; measure one here, or force this one if it will do");
}

int64_t memory_bytes(const PlanOptions& options, const device::DeviceInfo& info) {
  const costs::DeviceModel* model = model_of(options);
  return model != nullptr ? model->memory_bytes : info.memory_bytes;
}

// No budget may exceed the device's memory. For the model of a device, that memory is the budget if none is given.
int64_t budget_within(const PlanOptions& options, const device::DeviceInfo& info) {
  const costs::DeviceModel* model = model_of(options);
  const int64_t memory = memory_bytes(options, info);
  require(options.budget_bytes <= memory || memory <= 0, Code::kInvalidArgument, "the budget of ",
          options.budget_bytes, " bytes is above the ", memory, " bytes of memory that '",
          model != nullptr ? model->name : info.name, "' has");
  return options.budget_bytes == 0 && model != nullptr ? memory : options.budget_bytes;
}

// The bytes that keeping everything takes, whatever the regions' policies are: with ops in place, if that is less.
int64_t keep_all_bytes(Lowered lowered) {
  for (plan::Region& region : lowered.problem.regions) region.policy = Policy::kKeep;
  lowered.problem.budget_bytes = 0;
  const int64_t bytes = plan::solve(lowered.problem).arena_bytes;
  const std::optional<Lowered> pairs = with_in_place(std::move(lowered));
  return pairs ? std::min(bytes, plan::solve(pairs->problem).arena_bytes) : bytes;
}

// What to add to a refusal if all tiers together could not hold what keeping everything takes; "" if they could.
std::string full_tiers(const Lowered& lowered) {
  double room = 0;
  std::string words;
  for (const plan::Link& link : lowered.problem.links) {
    room += static_cast<double>(link.capacity_bytes);
    words += cat("; the tier '", link.tier, "' has room for ", link.capacity_bytes, " bytes and no more");
  }
  const bool full = !words.empty() && room < static_cast<double>(keep_all_bytes(lowered));
  return full ? words : "";
}

graph::JointOptions joint_options(const PlanOptions& options, const device::Device& device) {
  graph::JointOptions joint;
  joint.amp = options.amp;
  joint.amp_rules = options.amp_rules;
  joint.optimizer = options.optimizer;
  const kernels::Registry& registry = registry_of(device, options);
  joint.packed_bytes = registry.packed_bytes;
  joint.one_packed_form = registry.one_packed_form;
  joint.fuse_update = options.fuse_update;
  joint.parameters = options.parameters;
  joint.formats = options.formats;
  joint.threads = device.info().threads;
  return joint;
}

// The budget that the options ask for. A share is of the largest of the plans with everything kept.
int64_t budget_of(std::span<const Lowered> plans, const PlanOptions& options,
                  const device::DeviceInfo& info) {
  int64_t budget = budget_within(options, info);
  if (options.budget_share > 0) {
    int64_t all = 0;
    for (const Lowered& plan : plans) all = std::max(all, keep_all_bytes(plan));
    const double share = options.budget_share * static_cast<double>(all);
    require(share < 0x1p63, Code::kInvalidArgument, "the budget's share is ", options.budget_share,
            ", which of ", all, " bytes is no number of bytes; 1 stands for all of them");
    budget = std::max<int64_t>(1, static_cast<int64_t>(share));
  }
  const costs::DeviceModel* model = model_of(options);
  return model != nullptr ? std::min(budget, model->memory_bytes) : budget;
}

void check(const PlanOptions& options, const device::Device& device) {
  check_options(options);
  require(options.forced.vocabulary_parts >= 0, Code::kInvalidArgument,
          "the number of parts of a vocabulary must not be negative: ", options.forced.vocabulary_parts);
  require(options.forced.vocabulary_parts <= 1 || !options.tiers.empty(), Code::kInvalidArgument,
          "parts of a vocabulary live in a tier: name one (host, disk)");
  require(options.forced.vocabulary_parts <= 1 || !options.fuse_update, Code::kInvalidArgument,
          "a vocabulary in parts does not go with an update fused into backward, which has the weight in one "
          "piece");
  check_profile(options, device.info());
  require(!options.fuse_update || options.micro_steps <= 1, Code::kInvalidArgument,
          "an update fused into backward leaves nothing to accumulate, but the plan is for ",
          options.micro_steps, " micro-batches per update");
}

// An effective batch has the micro-batches that its values are of.
PlanOptions with_effective_steps(std::span<const ProgramGraph> graphs, PlanOptions options) {
  for (const ProgramGraph& program : graphs) {
    if (program.graph == nullptr || !program.graph->frozen()) continue;
    const int64_t steps =
        graph::find_sides(*program.graph, program.graph->loss(), program.graph->weight()).micro_steps;
    if (steps == 1) continue;
    require(options.micro_steps == 0 || options.micro_steps == steps, Code::kInvalidArgument, "the graph",
            program.name.empty() ? "" : cat(" of program '", program.name, "'"),
            " has values of the effective batch of ", steps, " micro-batches, but the plan is for ",
            options.micro_steps, " micro-batches per update");
    options.micro_steps = static_cast<uint32_t>(steps);
  }
  return options;
}

using Plans = std::vector<std::shared_ptr<const CompiledPlan>>;

Plans compile_with(std::span<const ProgramGraph> graphs, device::Device& device, const PlanOptions& options);

// A plan with more tiers never needs a larger budget. Where none fits, those with fewer tiers are tried as well: they
// may have other forms.
class WithFewerTiers {
 public:
  WithFewerTiers(std::span<const ProgramGraph> graphs, device::Device& device)
      : graphs_(graphs), device_(device) {}

  Plans run(const PlanOptions& options) {
    attempt(options, compile_with);
    for (const Tier tier : options.tiers) {
      if (!plans_.empty() && !options.smallest_budget) break;
      PlanOptions fewer = options;
      std::erase(fewer.tiers, tier);
      try {
        attempt(fewer, compile_set);
      } catch (const Error& error) {
        // A region that names the tier has no plan without it.
        if (error.code() != Code::kInvalidArgument && error.code() != Code::kNotFound) throw;
      }
    }
    if (plans_.empty()) throw *over_;
    return std::move(plans_);
  }

 private:
  void attempt(const PlanOptions& options, decltype(compile_with) compile) {
    try {
      Plans plans = compile(graphs_, device_, options);
      const auto budget = [](const Plans& of) { return of.front()->problem.budget_bytes; };
      if (plans_.empty() || budget(plans) < budget(plans_)) plans_ = std::move(plans);
    } catch (const Error& error) {
      if (error.code() != Code::kOverBudget || error.fault() == nullptr) throw;
      const auto least = [](const Error& of) { return of.fault()->smallest_budget_bytes; };
      if (!over_ || least(error) < least(*over_)) over_ = error;
    }
  }

  const std::span<const ProgramGraph> graphs_;
  device::Device& device_;
  Plans plans_;
  std::optional<Error> over_;  // names the smallest budget so far, while no plan fits
};

}  // namespace

std::shared_ptr<const CompiledPlan> compile(std::shared_ptr<const graph::Graph> graph, device::Device& device,
                                            const PlanOptions& options) {
  const ProgramGraph alone{"", std::move(graph)};
  return compile_set({&alone, 1}, device, options)[0];
}

Plans compile_set(std::span<const ProgramGraph> graphs, device::Device& device, const PlanOptions& given) {
  const PlanOptions options = with_effective_steps(graphs, given);
  if (options.tiers.size() < 2) return compile_with(graphs, device, options);
  return WithFewerTiers(graphs, device).run(options);
}

namespace {

Plans compile_with(std::span<const ProgramGraph> graphs, device::Device& device, const PlanOptions& options) {
  check(options, device);
  SetCompiler set(graphs, device, options);
  graph::JointOptions joint = joint_options(options, device);
  std::vector<Lowered> plans = set.lower_all(joint);
  if (leave_out_useless(plans, set.primary(), costs::Model(device.info(), options.costs), options, joint))
    plans = set.lower_all(joint);
  int64_t budget = options.smallest_budget ? 1 : budget_of(plans, options, device.info());
  const size_t primary = set.primary();
  const Relower again = [&](const graph::JointOptions& with) {
    Lowered plan = set.lower_primary(with);
    plan.problem.budget_bytes = budget;
    return std::make_shared<const Lowered>(std::move(plan));
  };
  const FindParts parts = [&](const graph::JointOptions& with) { return set.part_units(with); };
  plan::SolverCache cache;
  const auto solve = [&] {
    Lowered lowered = plans[primary];
    lowered.problem.budget_bytes = budget;
    return solve_with_tiles(std::make_shared<const Lowered>(std::move(lowered)), again, parts, joint, device,
                            options, cache);
  };
  std::optional<Planned> first;
  set.named(primary, [&] {
    try {
      first = solve();
    } catch (const Error& error) {
      const MemoryFault* fault = error.code() == Code::kOverBudget ? error.fault() : nullptr;
      if (fault == nullptr) throw;
      if (!options.smallest_budget)
        throw Error(error.code(), error.what() + full_tiers(plans[primary]), *fault);
      budget = static_cast<int64_t>(fault->smallest_budget_bytes);
      const int64_t memory = memory_bytes(options, device.info());
      if (memory > 0 && budget > memory) throw;
      first = solve();
    }
  });
  return set.with_others(std::make_shared<const CompiledPlan>(assemble(std::move(*first), device)), budget);
}

}  // namespace

bool may_use_disk(std::span<const ProgramGraph> graphs, const PlanOptions& options) {
  constexpr auto kDisk = kTierNames[static_cast<size_t>(Tier::kDisk)];
  const auto names_disk = [&](const ProgramGraph& program) {
    const std::vector<graph::Region>& regions = program.graph->regions();
    return std::any_of(regions.begin(), regions.end(),
                       [&](const graph::Region& region) { return region.offload_tier == kDisk; });
  };
  const auto& rows = options.region_policies;
  return std::find(options.tiers.begin(), options.tiers.end(), Tier::kDisk) != options.tiers.end() ||
         std::any_of(rows.begin(), rows.end(),
                     [](const RegionPolicy& row) { return row.tier == Tier::kDisk; }) ||
         std::any_of(graphs.begin(), graphs.end(), names_disk);
}

}  // namespace cairn::engine
