#include "runtime/compile/update/update_forms.h"

#include <algorithm>
#include <utility>

#include "runtime/compile/derived_weights.h"
#include "runtime/compile/in_place.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/streamed.h"
#include "runtime/compile/update/traffic.h"

namespace cairn::engine {
namespace {

// An update may be deferred if everything that it uses is at most this part of the budget.
constexpr int64_t kDeferredPart = 4;

// The form with ops in place, if the other plan has them.
std::shared_ptr<const Lowered> as_in(const Lowered& other, const Lowered& plan) {
  if (other.in_place_ops > 0)
    if (std::optional<Lowered> pairs = with_in_place(plan))
      return std::make_shared<const Lowered>(std::move(*pairs));
  return std::make_shared<const Lowered>(plan);
}

}  // namespace

UpdateForms::UpdateForms(Lower lower, const graph::JointOptions& joint, device::Device& device,
                         const PlanOptions& options)
    : lower_(std::move(lower)),
      joint_(joint),
      device_(device),
      options_(options),
      model_(device.info(), options.costs),
      micro_steps_(std::max<int64_t>(1, options.micro_steps)) {}

graph::JointOptions UpdateForms::without_derived_weights(const Lowered& plan) const {
  graph::JointOptions joint = joint_;
  joint.not_kept = not_kept(plan);
  const DerivedWeightChoices packed = derived_weight_choices(plan, model_, micro_steps_);
  leave_out(packed, std::vector<bool>(packed.choices.size(), true), joint);
  return joint;
}
// Without packed weights, which would have to be packed within the micro-batch. nullptr: no update is small enough.
std::shared_ptr<const Lowered> UpdateForms::deferred(const Lowered& plan) const {
  graph::JointOptions joint = without_derived_weights(plan);
  joint.squares_in_backward = true;
  const graph::JointGraph& from = *plan.joint;
  for (const graph::JointOp& update : from.ops(graph::kUpdate)) {
    const int32_t weight = update.out[update_op::kParameter];
    const int64_t bytes = stored_bytes(from, weight) + stored_bytes(from, update.in[update_op::kGrad]) +
                          state_bytes(from, update);
    if (bytes <= plan.problem.budget_bytes / kDeferredPart)
      joint.deferred_updates.insert(from.values[static_cast<size_t>(weight)].name);
  }
  const std::shared_ptr<const Lowered> with = lower_(joint);
  if (!with->joint->updates_deferred || !with->joint->ops(graph::kRepack).empty()) return nullptr;
  return as_in(plan, *with);
}

std::shared_ptr<const Lowered> UpdateForms::on_host(const Lowered& plan, const HostForm& form) const {
  if (form.packed && !plan.registry->packed_is_copy) return nullptr;
  if (joint_.fuse_update) return beside_backward(plan, form);
  graph::JointOptions joint = form.packed ? joint_ : without_derived_weights(plan);
  joint.squares_in_backward = !plan.problem.links.empty() && squares_pay(plan, model_, micro_steps_);
  const std::optional<Lowered> with =
      with_host_updates(*lower_(joint), device_, options_, form.share, form.disk);
  if (!with || form.packed == with->joint->ops(graph::kRepack).empty()) return nullptr;
  return as_in(plan, *with);
}

// The same where updates are fused into backward. Those that the host makes are not fused, and which ones it can make
// is known only after lowering.
std::shared_ptr<const Lowered> UpdateForms::beside_backward(const Lowered& plan, const HostForm& form) const {
  if (plan.layout != nullptr && plan.layout->plans > 1) return nullptr;
  graph::JointOptions joint = form.packed ? joint_ : without_derived_weights(plan);
  const auto name = [](const Lowered& of, int32_t weight) {
    return of.joint->values[static_cast<size_t>(weight)].name;
  };
  for (const graph::ParameterSlot& slot : plan.joint->parameters)
    joint.updates_beside_backward.insert(name(plan, slot.value));
  const std::optional<Lowered> all =
      with_host_updates(*lower_(joint), device_, options_, form.share, form.disk);
  if (!all || form.packed == all->joint->ops(graph::kRepack).empty()) return nullptr;
  joint.updates_beside_backward.clear();
  for (const int32_t weight : all->host_updated) joint.updates_beside_backward.insert(name(*all, weight));
  // Other weights would have to be packed in each run.
  for (const graph::JointOp& pack : all->joint->ops(graph::kRepack))
    if (!all->host_updated.contains(pack.in[0]))
      joint.not_kept.insert({name(*all, pack.in[0]), std::string(pack.attrs.word("use"))});
  std::optional<Lowered> with = with_host_updates(*lower_(joint), device_, options_, 1, form.disk);
  if (!with || with->host_updated.size() != all->host_updated.size()) return nullptr;
  if (options_.forced.host_updates == ForcedChoices::When::kAlways) {
    size_t left = static_cast<size_t>(options_.forced.host_deferred_share *
                                      static_cast<double>(with->host_updated.size()));
    for (auto weight = with->host_updated.rbegin(); left > 0; ++weight, --left)
      with->host_deferred.insert(*weight);
  }
  return as_in(plan, *with);
}

std::shared_ptr<const Lowered> UpdateForms::with_squares(const Lowered& plan) const {
  graph::JointOptions joint = joint_;
  joint.not_kept = not_kept(plan);
  joint.squares_in_backward = true;
  return as_in(plan, *lower_(joint));
}

}  // namespace cairn::engine
