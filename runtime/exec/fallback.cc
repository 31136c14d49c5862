#include "runtime/exec/fallback.h"

#include <algorithm>

#include "runtime/compile/residency/gradients.h"

namespace cairn::engine {
namespace {

// Gradients of the new plan end elsewhere in the arena. Moves the operands and workspaces of norm, update and
// packing accordingly.
void move_gradients(CompiledPlan& rest, const CompiledPlan& from) {
  rest.gradient_offsets = gradient_offsets(rest);
  if (rest.gradient_offsets == from.gradient_offsets) return;
  require(!from.streams(), Code::kUnsupported,
          "gradients would lie elsewhere, where optimizer state streams through the device");
  const Placed::FreeRange free = from.free_range(), now = rest.free_range();
  const auto move = [&](int64_t& offset) {
    // Gradients come first: a free range without bytes may begin where one lies.
    for (const auto& [value, place] : from.gradient_offsets)
      if (place == offset) return void(offset = rest.gradient_offsets.at(value));
    if (offset == free.offset) offset = now.offset;
  };
  for (Program& program : rest.programs) {
    if (&program == &rest.program()) continue;
    for (Operand& operand : program.operands)
      if (operand.tier == Tier::kDevice) move(operand.offset);
    for (Launch& launch : program.launches) {
      require(launch.workspace_bytes <= now.bytes, Code::kUnsupported, "an update's kernels need ",
              launch.workspace_bytes, " bytes, and ", now.bytes, " are free besides gradients");
      if (launch.workspace_bytes > 0) move(launch.workspace_offset);
    }
    for (Range& range : program.ranges)
      if (range.tier == Tier::kDevice) move(range.offset);
  }
}

}  // namespace

std::shared_ptr<const CompiledPlan> without_tier(const CompiledPlan& plan, Tier tier) {
  auto rest = std::make_shared<CompiledPlan>(plan);
  plan::Problem& problem = rest->problem;
  problem.links.clear();
  rest->link_tier.clear();
  std::vector<int32_t> now(plan.link_tier.size(), -1);  // link before -> link now
  for (size_t link = 0; link < plan.link_tier.size(); ++link) {
    if (plan.link_tier[link] == tier) continue;
    now[link] = static_cast<int32_t>(problem.links.size());
    problem.links.push_back(plan.problem.links[link]);
    rest->link_tier.push_back(plan.link_tier[link]);
  }
  for (plan::Region& region : problem.regions) {
    if (region.policy != Policy::kOffload) continue;
    const auto link = static_cast<size_t>(std::max(region.offload_tier, 0));
    region.offload_tier = link < now.size() ? now[link] : -1;
    if (region.offload_tier < 0) region.policy = Policy::kPlannerDecides;
  }
  for (plan::Value& value : problem.values)
    if (value.home >= 0) value.home = now[static_cast<size_t>(value.home)];
  problem.budget_bytes = plan.plan.arena_bytes;
  require(plan.resident_bytes(tier) == 0, Code::kInternal, "weights or optimizer state live in the ",
          kTierNames[static_cast<size_t>(tier)], " tier");
  rest->plan = plan::solve(problem);
  require(rest->plan.value_offsets == plan.plan.value_offsets, Code::kInternal, "a plan without the ",
          kTierNames[static_cast<size_t>(tier)], " tier moves persistent values");
  move_gradients(*rest, plan);
  rest->program() = micro_batch_program(*rest);
  return rest;
}

bool may_repeat(const CompiledPlan& plan) {
  const graph::JointGraph& joint = *plan.joint;
  return std::none_of(joint.ops().begin(), joint.ops().end(), [&](const graph::JointOp& op) {
    const bool custom = op.code == ops::OpCode::k_custom;
    // Updates within backward count once they ran: the session finds out.
    const bool update = op.code == ops::OpCode::k_update || op.code == ops::OpCode::k_grad_scale;
    return (ops::row(op.code).is(ops::EFFECT) && !update) ||
           (custom &&
            !joint.forward->customs()[static_cast<size_t>(op.attrs.integer("custom"))].recomputable);
  });
}

std::optional<Error> disk_failure(const CompiledPlan& plan) {
  if (std::find(plan.link_tier.begin(), plan.link_tier.end(), Tier::kDisk) == plan.link_tier.end()) return {};
  try {
    throw;
  } catch (const Error& error) {
    if (error.code() == Code::kIo && error.fault() != nullptr && error.fault()->tier == Tier::kDisk)
      return error;
  } catch (...) {  // an error of another kind
  }
  return {};
}

}  // namespace cairn::engine
