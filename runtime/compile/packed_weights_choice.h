// Packed weights as free choices of the planner. A packed weight takes persistent bytes and makes the ops that read
// it faster. Without it they pack the weight in their workspace at every run; the bits are the same.
#pragma once
#include <set>
#include <span>

#include "runtime/compile/stages.h"
#include "runtime/costs/model.h"
#include "runtime/plan/choices.h"

namespace cairn::engine {

struct PackedWeightChoices {
  std::vector<plan::Choice> choices;
  std::vector<std::vector<graph::PackedWeightUse>> packed_weights;  // by choice: kept together or not at all
};

// A choice per packed weight; those that one op reads together are one choice. Its seconds: packing at every use of
// a micro-batch, less packing once per update if the weight is updated.
PackedWeightChoices packed_weight_choices(const Lowered& plan, const costs::Model& model,
                                          int64_t micro_steps);
// The next graph::derive() leaves out the choices that are taken.
void leave_out(const PackedWeightChoices& from, const std::vector<bool>& taken, graph::JointOptions& joint);

// The packed weights that the plan was lowered without.
std::set<graph::PackedWeightUse> left_out(const Lowered& plan);

// Leaves out packed weights that save no seconds in any plan: with one micro-batch per update, those that are used
// once. True: there were some.
bool leave_out_useless(const Lowered& plan, const costs::Model& model, int64_t micro_steps,
                       graph::JointOptions& joint);

// Seconds of a joint op, with the packing that it does for itself.
costs::Answer op_seconds(const graph::JointGraph& joint, int32_t op, const costs::Model& model);

// Bytes of the plan's packed weights, and of those that were left out.
int64_t packed_bytes(const Lowered& plan);
int64_t unpacked_bytes(const Lowered& plan);

}  // namespace cairn::engine
