// Residents that micro-batches use and that may live in a tier: weights, packed weights, gradients, and optimizer
// state of fused updates. In the problem they are values with a residency (plan::Value::home). plan::solve() chooses
// which of them are kept on the device. Micro-batches fetch the others for their uses, and the update streams them
// (update.cc).
#pragma once
#include <optional>

#include "runtime/compile/stages.h"

namespace cairn::engine {

// Before the problem is solved: every persistent value of a page or more that micro-batches use may live in the first
// tier with room. The problem gets an op in front that stands for what the update needs on the device. Nothing: there
// is no such value, or no link. overwrites_gradients: a step has one micro-batch. ends_gradients: gradients kept on
// the device then end with the step where they can (gradients.h), and the op is the problem's last one.
std::optional<Lowered> with_residencies(Lowered plan, bool overwrites_gradients, bool ends_gradients);

// By link, the bytes that with_residencies() would let live there.
std::vector<int64_t> residency_bytes(const Lowered& plan);

// After it is solved: a value kept on the device persists there, the others are in Lowered::homes.
Planned with_solved_residencies(Lowered plan, plan::Plan solved);

// For another plan of the set: its values live in the tiers where the primary plan's do.
Lowered with_residencies_of(const Placed& primary, Lowered plan);

// The values that an update op has on the device in one piece, next to what streams in parts.
struct WholeValues {
  std::vector<int32_t> fetched,
      made;                      // joint values of a tier: those that come before it; those that it writes
  std::vector<int32_t> leaving;  // of both, those that go back to their tier
  int64_t bytes = 0;             // on the device
};
WholeValues whole_values(const Lowered& plan, const graph::JointOp& update);
// The elements of the weight and the gradient come and go with the parts of the optimizer state: no op needs them
// in one piece.
bool streams_in_parts(const Lowered& plan, const graph::JointOp& update);

// Bytes of a weight and its packed forms, as far as they stream.
int64_t packing_bytes(const Lowered& plan, int32_t weight);
// How the norm reads a sliced gradient: chunk by chunk. The chunks' sums of squares are kept on the device until all
// are made.
struct SquaresChunks {
  int64_t elements = 0;  // of a chunk; the last one may have fewer
  int64_t count = 0;
  int64_t chunk_bytes = 0, sums_bytes = 0;  // on the device, aligned
  int64_t bytes() const { return chunk_bytes + sums_bytes; }
};
// Nothing: the gradient comes in one piece. It is not sliced, the backend has no chunks, or chunks would take no
// less room.
std::optional<SquaresChunks> squares_chunks(const Lowered& plan, int32_t gradient);
// The least that is on the device while the norm reads a gradient of a tier: all of it, or a chunk and the sums of
// all chunks.
int64_t norm_bytes(const Lowered& plan, int32_t gradient);
// The room above the persistent values that the programs between micro-batches need, the largest of them.
int64_t between_steps_bytes(const Lowered& plan);
// A name, which no other op has, for the op of the problem that stands for these programs.
std::string name_between_steps(const plan::Problem& problem);

// The problem without these of its values: no op uses them, or ops reach them in a tier.
Lowered without_values(Lowered plan, const std::vector<bool>& gone);

}  // namespace cairn::engine
