#include "runtime/compile/residency/gradients.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/compile/residency/homes.h"

namespace cairn::engine {
namespace {

using graph::JointGraph;
using graph::Role;

// Only this plan's norm and update read them before the next micro-batch overwrites them.
bool may_end(const Lowered& plan) {
  const JointGraph& joint = *plan.joint;
  const bool alone = plan.layout == nullptr || plan.layout->plans == 1;
  // With fused updates, the gradients that are left have several writers, or the host reads them during backward.
  const bool fused_alone = joint.grad_scale < 0 || plan.problem.links.empty();
  return alone && fused_alone && joint.slices.empty() && !joint.updates_deferred && !plan.problem.ops.empty();
}

// By problem value, the ops that write a persistent gradient.
std::vector<std::vector<size_t>> writers_of(const Lowered& plan) {
  const JointGraph& joint = *plan.joint;
  std::vector<std::vector<size_t>> writers(plan.problem.values.size());
  for (size_t o = 0; o < plan.problem.ops.size(); ++o)
    for (const int32_t part : plan.problem_op[o])
      for (const int32_t v : joint.ops()[at(part)].out) {
        if (v < 0 || joint.values[at(joint.storage(v))].role != Role::kGradient) continue;
        const int32_t stored = plan.problem_value[at(joint.storage(v))];
        if (stored < 0 || !plan.problem.values[at(stored)].persistent) continue;
        if (writers[at(stored)].empty() || writers[at(stored)].back() != o) writers[at(stored)].push_back(o);
      }
  return writers;
}

}  // namespace

Lowered end_gradients(Lowered plan, const PlanOptions& options) {
  if ((options.micro_steps != 1 && !options.fuse_update) || !may_end(plan)) return plan;
  plan::Problem& problem = plan.problem;
  const std::vector<std::vector<size_t>> writers = writers_of(plan);
  plan::Op between;
  for (size_t v = 0; v < writers.size(); ++v) {
    // A gradient with several writers would come back over a link with the first one's part only.
    if (writers[v].empty() || (writers[v].size() > 1 && !problem.links.empty())) continue;
    problem.values[v].persistent = false;
    plan::Op& first = problem.ops[writers[v].front()];
    std::erase(first.inputs, static_cast<int32_t>(v));
    first.outputs.push_back(static_cast<int32_t>(v));
    between.inputs.push_back(static_cast<int32_t>(v));
  }
  if (between.inputs.empty()) return plan;
  between.name = name_between_steps(problem);
  between.recomputable = false;
  between.workspace_bytes = between_steps_bytes(plan);
  // The op that stands for norm and update counts as measured.
  if (plan.measured_ops == static_cast<int64_t>(problem.ops.size())) ++plan.measured_ops;
  problem.ops.push_back(std::move(between));
  plan.problem_op.emplace_back();
  plan.gradients_end = true;
  return plan;
}

Lowered let_gradients_persist(Lowered plan) {
  if (!plan.gradients_end) return plan;
  plan::Problem& problem = plan.problem;
  for (const int32_t v : problem.ops.back().inputs) {
    problem.values[at(v)].persistent = true;
    for (plan::Op& op : problem.ops)
      if (std::erase(op.outputs, v) > 0) op.inputs.push_back(v);
  }
  if (plan.measured_ops == static_cast<int64_t>(problem.ops.size())) --plan.measured_ops;
  problem.ops.pop_back();
  plan.problem_op.pop_back();
  plan.gradients_end = false;
  return plan;
}

Lowered end_resident_gradients(Lowered plan) {
  if (!may_end(plan)) return plan;
  const std::vector<std::vector<size_t>> writers = writers_of(plan);
  for (size_t v = 0; v < writers.size(); ++v) {
    plan::Value& value = plan.problem.values[v];
    value.fresh = value.home >= 0 && writers[v].size() == 1;
    plan.gradients_end = plan.gradients_end || value.fresh;
  }
  return plan;
}

std::map<int32_t, int64_t> gradient_offsets(const Planned& plan) {
  if (!plan.gradients_end) return {};
  const plan::Problem& problem = plan.problem;
  std::vector<int64_t> offsets(problem.values.size(), -1);
  for (const plan::Step& step : plan.plan.steps) {
    if (step.kind == plan::StepKind::kIn) offsets[at(step.index)] = step.offset;
    if (step.kind != plan::StepKind::kRun) continue;
    const std::vector<int32_t>& made = problem.ops[at(step.index)].outputs;
    for (size_t k = 0; k < made.size() && k < step.offsets.size(); ++k)
      offsets[at(made[k])] = step.offsets[k];
  }
  std::map<int32_t, int64_t> found;
  for (const int32_t v : problem.ops.back().inputs) found[v] = offsets[at(v)];
  return found;
}

}  // namespace cairn::engine
