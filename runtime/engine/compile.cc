#include <cmath>

#include "runtime/costs/model.h"
#include "runtime/engine/in_place.h"
#include "runtime/engine/variants.h"

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

// The device's memory bounds every budget, and is the budget for a device that is not there.
int64_t budget_within(const PlanOptions& options, const device::DeviceInfo& info) {
  const costs::DeviceModel* model = model_of(options);
  const int64_t memory = model != nullptr ? model->memory_bytes : info.memory_bytes;
  require(options.budget_bytes <= memory || memory <= 0, Code::kInvalidArgument, "the budget of ",
          options.budget_bytes, " bytes is above the ", memory, " bytes of memory that '",
          model != nullptr ? model->name : info.name, "' has");
  return options.budget_bytes == 0 && model != nullptr ? memory : options.budget_bytes;
}

// What the plan would need if everything were kept, whatever the regions say: with ops in place, if that is
// less.
int64_t keep_all_bytes(const CompiledPlan& lowered) {
  CompiledPlan kept = lowered;
  for (plan::Region& region : kept.problem.regions) region.policy = plan::Policy::kKeep;
  kept.problem.budget_bytes = 0;
  const int64_t bytes = plan::solve(kept.problem).arena_bytes;
  return make_in_place(kept) > 0 ? std::min(bytes, plan::solve(kept.problem).arena_bytes) : bytes;
}

}  // namespace

std::shared_ptr<const CompiledPlan> compile(std::shared_ptr<const graph::Graph> graph, device::Device& device,
                                            const PlanOptions& options) {
  check_options(options);
  check_profile(options, device.info());
  const int64_t budget = budget_within(options, device.info());
  require(!options.fuse_update || options.micro_steps <= 1, Code::kInvalidArgument,
          "an update fused into backward leaves nothing to accumulate, but the plan is for ",
          options.micro_steps, " micro-batches per update");
  graph::JointOptions joint;
  joint.amp = options.amp;
  joint.optimizer = options.optimizer;
  const costs::DeviceModel* model = model_of(options);
  joint.packed_bytes = model != nullptr && model->separate_memory ? nullptr : device.kernels().packed_bytes;
  joint.one_pack = device.kernels().one_pack;
  joint.fuse_update = options.fuse_update;
  joint.threads = device.info().threads;
  const auto lowered = [&](const graph::JointOptions& with) {
    auto plan = std::make_shared<CompiledPlan>();
    plan->joint = graph::derive(graph, with);
    plan->costs = options.costs;
    lower(*plan, device, options);
    return plan;
  };
  auto plan = lowered(joint);
  plan->problem.budget_bytes = budget;
  if (options.budget_share > 0) {
    const int64_t all = keep_all_bytes(*plan);
    const double share = options.budget_share * static_cast<double>(all);
    require(share < 0x1p63, Code::kInvalidArgument, "the budget's share is ", options.budget_share,
            ", which of ", all, " bytes is no number of bytes; 1 stands for all of them");
    plan->problem.budget_bytes = std::max<int64_t>(1, static_cast<int64_t>(share));
  }
  if (model != nullptr)
    plan->problem.budget_bytes = std::min(plan->problem.budget_bytes, model->memory_bytes);
  const Relower again = [&, given = plan->problem.budget_bytes](const graph::JointOptions& with) {
    auto other = lowered(with);
    other->problem.budget_bytes = given;
    return other;
  };
  plan = solve_variants(std::move(plan), again, joint, device, options);
  assemble_update(*plan, device);  // first: it says where copies begin in the tiers
  assemble(*plan);
  return plan;
}

}  // namespace cairn::engine
