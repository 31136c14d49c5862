// Other lowerings of a plan's graph, by where and when its updates run.
#pragma once
#include <functional>
#include <memory>

#include "runtime/compile/program.h"
#include "runtime/compile/update/host_forms.h"
#include "runtime/costs/model.h"

namespace cairn::engine {

class UpdateForms {
 public:
  using Lower = std::function<std::shared_ptr<CompiledPlan>(const graph::JointOptions&)>;
  // lower: the graph, with the budget of the first time; joint: what it was lowered with then.
  UpdateForms(Lower lower, const graph::JointOptions& joint, device::Device& device,
              const PlanOptions& options);

  graph::JointOptions without_packed_weights(const CompiledPlan& plan) const;
  // Updates as ops of the next forward part, where all that one uses is a small part of the budget. nullptr: none is.
  std::shared_ptr<CompiledPlan> deferred(const CompiledPlan& plan) const;
  // Updates on the host, in the next forward part, or, where updates are fused, beside backward. Packed weights are those that are
  // copies, which the device would otherwise have to make again, from weights that it lacks. nullptr: there is nothing of the kind.
  std::shared_ptr<CompiledPlan> on_host(const CompiledPlan& plan, const HostForm& form) const;
  // The norm's squares in backward.
  std::shared_ptr<CompiledPlan> with_squares(const CompiledPlan& plan) const;

 private:
  std::shared_ptr<CompiledPlan> beside_backward(const CompiledPlan& plan, const HostForm& form) const;

  const Lower lower_;
  const graph::JointOptions& joint_;
  device::Device& device_;
  const PlanOptions& options_;
  const costs::Model model_;
  const int64_t micro_steps_;
};

}  // namespace cairn::engine
