// Packed weights as free choices of the planner: a packed weight is persistent bytes that make an op faster.
// Given up, the ops that read it pack the weight in their workspace, at every run; the bits are the same.
#pragma once
#include <set>
#include <span>

#include "runtime/compile/program.h"
#include "runtime/costs/model.h"
#include "runtime/plan/choices.h"

namespace cairn::engine {

struct PackedWeightChoices {
  std::vector<plan::Choice> choices;
  std::vector<std::vector<graph::PackedWeightUse>> packed_weights;  // per choice: what goes together
};

// A choice per packed weight of a lowered plan; packed weights that one op reads together are one. Seconds:
// packing at every use in a micro-batch, less packing once per update, of a weight that is updated.
PackedWeightChoices packed_weight_choices(const CompiledPlan& plan, const costs::Model& model,
                                          int64_t micro_steps);
// taken: one per choice of `from`. The next derive() leaves out what was taken.
void leave_out(const PackedWeightChoices& from, const std::vector<bool>& taken, graph::JointOptions& joint);

// Those that the plan was lowered without.
std::set<graph::PackedWeightUse> left_out(const CompiledPlan& plan);

// Leaves out those that save no seconds: with one micro-batch per update, what is used once. They are no use to any
// plan. Whether there were any.
bool leave_out_useless(const CompiledPlan& plan, const costs::Model& model, int64_t micro_steps,
                       graph::JointOptions& joint);

// Seconds of a joint op, packed weights that it makes for itself included.
costs::Answer op_seconds(const graph::JointGraph& joint, int32_t op, const costs::Model& model);

// Device bytes of the plan's packed weights, and of those that were left out.
int64_t packed_bytes(const CompiledPlan& plan);
int64_t unpacked_bytes(const CompiledPlan& plan);

}  // namespace cairn::engine
