// Weights, packed weights, gradients, and optimizer state of fused updates that may live in a tier: values of the
// problem with a home. plan::solve() chooses which of them stay; micro-batches fetch the others for their uses,
// and the update streams them (update.cc).
#pragma once
#include <optional>

#include "runtime/compile/program.h"

namespace cairn::engine {

// Gives every persistent value of a page or more that ops of the micro-batch use a home in the first tier with
// room, and the problem an op in front that stands for what the update needs on the device. False, and nothing
// is changed: there is none, or no link.
// overwrites_gradients: a step has one micro-batch. ends_gradients: then those that stay do so from backward on, where they may
// (gradients.h), and the op stands behind the problem.
bool give_homes(CompiledPlan& plan, bool overwrites_gradients, bool ends_gradients);

// By link: what would live there.
std::vector<int64_t> bytes_with_homes(const CompiledPlan& plan);

// plan.plan is of the problem with homes: what stays persists, the rest is in plan.homes.
void settle_homes(CompiledPlan& plan);

// The same homes for another plan of the set, whose values are at the same places in the tiers.
void share_homes(CompiledPlan& plan, const CompiledPlan& primary);

// The values that an op of the update has whole on the device beside what is streamed in parts.
struct WholeValues {
  std::vector<int32_t> fetched, made;  // joint values that live in a tier: read there before; written
  std::vector<int32_t> leaving;        // of both, those that are brought back
  int64_t bytes = 0;                   // on the device
};
WholeValues whole_values(const CompiledPlan& plan, const graph::JointOp& update);
// The weight's and the gradient's elements come and go with the parts of the optimizer state: nothing needs
// them whole.
bool streams_in_parts(const CompiledPlan& plan, const graph::JointOp& update);

// Of a weight and its packed forms, as far as they live in tiers.
int64_t packing_bytes(const CompiledPlan& plan, int32_t weight);
// How the norm takes a gradient that is sliced: chunk by chunk, of which the sums of squares stay on the device until all are there.
struct SquaresChunks {
  int64_t elements = 0;  // of a chunk; the last one may have fewer
  int64_t count = 0;
  int64_t chunk_bytes = 0, sums_bytes = 0;  // on the device, aligned
  int64_t bytes() const { return chunk_bytes + sums_bytes; }
};
// nullopt: it comes whole, as it is not sliced, the backend has no chunks, or they would take no less room.
std::optional<SquaresChunks> squares_chunks(const CompiledPlan& plan, int32_t gradient);
// The least that is on the device while the norm goes through a gradient that lives in a tier: all of it, or a chunk and the
// chunks' sums.
int64_t norm_bytes(const CompiledPlan& plan, int32_t gradient);
// What the programs around a micro-batch need above what persists: the largest of them.
int64_t between_steps_bytes(const CompiledPlan& plan);
// Of the op that stands for them, which no other op has.
std::string name_between_steps(const plan::Problem& problem);

// Takes values that no op reads or writes, or that ops reach elsewhere, out of a problem: by problem value.
void remove_values(CompiledPlan& plan, const std::vector<bool>& gone);

}  // namespace cairn::engine
