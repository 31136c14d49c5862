// Derived weights as free choices of the planner: packed for the backend, or decoded from a format that ops do not
// read. One that is kept takes persistent bytes, and is made once, whenever its parameter changed. Without it, each op
// that reads a packed weight packs it, and an op of the micro-batch decodes; the bits are the same.
#pragma once
#include <set>
#include <span>

#include "runtime/compile/kernel_maker.h"
#include "runtime/compile/stages.h"
#include "runtime/costs/model.h"
#include "runtime/plan/choices.h"

namespace cairn::engine {

struct DerivedWeightChoices {
  std::vector<plan::Choice> choices;
  std::vector<std::vector<graph::DerivedUse>> uses;  // by choice: kept together or not at all
  std::vector<bool> activations;  // by choice: it counts as an activation where it is not kept
};

// A choice per derived weight; those that one op reads together are one choice. Its seconds: making it at every use of
// a micro-batch, less making it once per update if the parameter is updated. One that is packed of blocks saves what its ops
// take longer that read the blocks.
DerivedWeightChoices derived_weight_choices(const Lowered& plan, const costs::Model& model,
                                            int64_t micro_steps);
// The next graph::derive() leaves out the choices that are taken.
void leave_out(const DerivedWeightChoices& from, const std::vector<bool>& taken, graph::JointOptions& joint);

// The derived weights that the plan was lowered without.
std::set<graph::DerivedUse> not_kept(const Lowered& plan);

// Leaves out derived weights that are not worth their bytes in any plan. Those that save no seconds: packed ones that
// are used once, with one micro-batch per update. Of those that count as activations, such as decoded ones: those that
// a policy wants recomputed or offloaded, those that the primary plan does not read, and, where nothing is trained and
// nothing limits memory, all, as no backward part needs them again. True: there were some.
bool leave_out_useless(std::span<const Lowered> plans, size_t primary, const costs::Model& model,
                       const PlanOptions& options, graph::JointOptions& joint);

// Seconds of a joint op, with the packing that it does for itself.
costs::Answer op_seconds(const graph::JointGraph& joint, int32_t op, const costs::Model& model);
// The same on other operands than its own.
costs::Answer op_seconds(const graph::JointGraph& joint, int32_t op, Operands operands,
                         const costs::Model& model);

// Bytes of the plan's derived weights, all or of a kind, and of those of a kind that are not kept.
int64_t derived_bytes(const Lowered& plan);
int64_t kept_bytes(const Lowered& plan, graph::Role role);
int64_t not_kept_bytes(const Lowered& plan, graph::Role role);

}  // namespace cairn::engine
