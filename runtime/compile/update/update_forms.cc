#include "runtime/compile/update/update_forms.h"

#include <algorithm>
#include <utility>

#include "runtime/compile/in_place.h"
#include "runtime/compile/packed_weights_choice.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/streamed.h"
#include "runtime/compile/update/traffic.h"

namespace cairn::engine {
namespace {

// An update of which all is on the device at once may take this part of the budget.
constexpr int64_t kDeferredPart = 4;

}  // namespace

UpdateForms::UpdateForms(Lower lower, const graph::JointOptions& joint, device::Device& device,
                         const PlanOptions& options)
    : lower_(std::move(lower)),
      joint_(joint),
      device_(device),
      options_(options),
      model_(device.info(), options.costs),
      micro_steps_(std::max<int64_t>(1, options.micro_steps)) {}

graph::JointOptions UpdateForms::without_packed_weights(const CompiledPlan& plan) const {
  graph::JointOptions joint = joint_;
  joint.unpacked = left_out(plan);
  const PackedWeightChoices packed = packed_weight_choices(plan, model_, micro_steps_);
  leave_out(packed, std::vector<bool>(packed.choices.size(), true), joint);
  return joint;
}
// Packed weights would have to be made within the micro-batch. nullptr: nothing is small enough.
std::shared_ptr<CompiledPlan> UpdateForms::deferred(const CompiledPlan& plan) const {
  graph::JointOptions joint = without_packed_weights(plan);
  joint.squares_in_backward = true;
  const graph::JointGraph& from = *plan.joint;
  for (const graph::JointOp& update : from.ops(graph::kUpdate)) {
    const int32_t weight = update.out[update_op::kParameter];
    const int64_t bytes = stored_bytes(from, weight) + stored_bytes(from, update.in[update_op::kGrad]) +
                          state_bytes(from, update);
    if (bytes <= plan.problem.budget_bytes / kDeferredPart)
      joint.deferred_updates.insert(from.values[static_cast<size_t>(weight)].name);
  }
  std::shared_ptr<CompiledPlan> with = lower_(joint);
  if (!with->joint->updates_deferred || !with->joint->ops(graph::kRepack).empty()) return nullptr;
  if (plan.in_place_ops > 0) make_in_place(*with);
  return with;
}

std::shared_ptr<CompiledPlan> UpdateForms::on_host(const CompiledPlan& plan, const HostForm& form) const {
  if (form.packed && !plan.registry->packed_is_copy) return nullptr;
  if (joint_.fuse_update) return beside_backward(plan, form);
  graph::JointOptions joint = form.packed ? joint_ : without_packed_weights(plan);
  joint.squares_in_backward = !plan.problem.links.empty() && squares_pay(plan, model_, micro_steps_);
  std::shared_ptr<CompiledPlan> with = lower_(joint);
  if (!choose_host_updates(*with, device_, options_, form.share, form.disk)) return nullptr;
  if (form.packed == with->joint->ops(graph::kRepack).empty()) return nullptr;
  if (plan.in_place_ops > 0) make_in_place(*with);
  return with;
}

// The same where updates are fused into backward: those that the host makes are not, which is known only once all that it could
// make is.
std::shared_ptr<CompiledPlan> UpdateForms::beside_backward(const CompiledPlan& plan,
                                                           const HostForm& form) const {
  if (plan.layout != nullptr && plan.layout->plans > 1) return nullptr;
  graph::JointOptions joint = form.packed ? joint_ : without_packed_weights(plan);
  const auto name = [](const CompiledPlan& of, int32_t weight) {
    return of.joint->values[static_cast<size_t>(weight)].name;
  };
  for (const graph::ParameterSlot& slot : plan.joint->parameters)
    joint.updates_beside_backward.insert(name(plan, slot.value));
  const std::shared_ptr<CompiledPlan> all = lower_(joint);
  if (!choose_host_updates(*all, device_, options_, form.share, form.disk)) return nullptr;
  if (form.packed == all->joint->ops(graph::kRepack).empty()) return nullptr;
  joint.updates_beside_backward.clear();
  for (const int32_t weight : all->host_updated) joint.updates_beside_backward.insert(name(*all, weight));
  // Packed forms of other weights would have to be made again in each run.
  for (const graph::JointOp& pack : all->joint->ops(graph::kRepack))
    if (!all->host_updated.contains(pack.in[0]))
      joint.unpacked.insert({name(*all, pack.in[0]), std::string(pack.attrs.word("use"))});
  std::shared_ptr<CompiledPlan> with = lower_(joint);
  const bool any = choose_host_updates(*with, device_, options_, 1, form.disk);
  if (!any || with->host_updated.size() != all->host_updated.size()) return nullptr;
  if (options_.host_updates == PlanOptions::Defer::kAlways) {
    size_t left =
        static_cast<size_t>(options_.host_deferred_share * static_cast<double>(with->host_updated.size()));
    for (auto weight = with->host_updated.rbegin(); left > 0; ++weight, --left)
      with->host_deferred.insert(*weight);
  }
  if (plan.in_place_ops > 0) make_in_place(*with);
  return with;
}

std::shared_ptr<CompiledPlan> UpdateForms::with_squares(const CompiledPlan& plan) const {
  graph::JointOptions joint = joint_;
  joint.unpacked = left_out(plan);
  joint.squares_in_backward = true;
  std::shared_ptr<CompiledPlan> with = lower_(joint);
  if (plan.in_place_ops > 0) make_in_place(*with);
  return with;
}

}  // namespace cairn::engine
