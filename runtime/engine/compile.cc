#include <cmath>

#include "runtime/engine/program.h"

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

// What the plan would need if everything were kept, whatever the regions say.
int64_t keep_all_bytes(plan::Problem problem) {
  for (plan::Region& region : problem.regions) region.policy = plan::Policy::kKeep;
  problem.budget_bytes = 0;
  return plan::solve(problem).arena_bytes;
}

}  // namespace

std::shared_ptr<const CompiledPlan> compile(std::shared_ptr<const graph::Graph> graph, device::Device& device,
                                            const PlanOptions& options) {
  check_options(options);
  auto plan = std::make_shared<CompiledPlan>();
  graph::JointOptions joint;
  joint.amp = options.amp;
  joint.optimizer = options.optimizer;
  joint.packed_bytes = device.kernels().packed_bytes;
  joint.threads = device.info().threads;
  plan->joint = graph::derive(std::move(graph), joint);
  lower(*plan, device, options);
  plan->problem.budget_bytes = options.budget_bytes;
  if (options.budget_share > 0)
    plan->problem.budget_bytes = std::max<int64_t>(
        1, static_cast<int64_t>(options.budget_share * static_cast<double>(keep_all_bytes(plan->problem))));
  plan->plan = plan::solve(plan->problem);
  assemble(*plan);
  return plan;
}

}  // namespace cairn::engine
