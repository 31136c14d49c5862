// Other ways to lower the graph of a plan, by where and when its updates run.
#pragma once
#include <functional>
#include <memory>

#include "runtime/compile/stages.h"
#include "runtime/compile/update/host_forms.h"
#include "runtime/costs/model.h"

namespace cairn::engine {

class UpdateForms {
 public:
  using Lower = std::function<std::shared_ptr<const Lowered>(const graph::JointOptions&)>;
  // lower: lowers the graph with the budget of the first time. joint: the options of the first time.
  UpdateForms(Lower lower, const graph::JointOptions& joint, device::Device& device,
              const PlanOptions& options);

  graph::JointOptions without_derived_weights(const Lowered& plan) const;
  // Updates become ops of the next forward if everything that one uses is a small part of the budget. nullptr: none
  // is.
  std::shared_ptr<const Lowered> deferred(const Lowered& plan) const;
  // Updates on the host: in the next forward or, where updates are fused, concurrently with backward. Of packed
  // weights there are only those that are copies: the device lacks the weights to pack others. nullptr: the host
  // can make no update.
  std::shared_ptr<const Lowered> on_host(const Lowered& plan, const HostForm& form) const;
  // Backward sums the squares of the gradients for the norm.
  std::shared_ptr<const Lowered> with_squares(const Lowered& plan) const;

 private:
  std::shared_ptr<const Lowered> beside_backward(const Lowered& plan, const HostForm& form) const;

  const Lower lower_;
  const graph::JointOptions& joint_;
  device::Device& device_;
  const PlanOptions& options_;
  const costs::Model model_;
  const int64_t micro_steps_;
};

}  // namespace cairn::engine
