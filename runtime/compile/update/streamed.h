// What an update op streams, and its bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/compile/stages.h"

namespace cairn::engine {

// The size of an update's copies where the arena has room for three: large enough for a link's full rate, and small
// enough for both directions and the kernels to overlap.
inline constexpr int64_t kPieceBytes = int64_t{4} << 20;
// The least size of a copy; the arena has room for three.
inline constexpr int64_t kMinPieceBytes = int64_t{32} << 10;
inline constexpr int64_t kSlots = 3;

// The least room for offloaded state to stream through: three pieces, or the largest state that does not split.
int64_t least_ring_bytes(const Lowered& plan);

// The most that comes from the disk at once for updates on the host.
inline int64_t host_piece_bytes(const Lowered& plan) {
  return plan.host_ring_bytes / kSlots / kPageBytes * kPageBytes;
}

// The tier of what an update op streams: of its states, or else of what it fetches. Nothing: everything is on the
// device or used in place.
std::optional<Tier> streamed_from(const Lowered& plan, const graph::JointOp& update);
// The states that an update op changes, in the order of its outputs.
std::span<const int32_t> states_of(const graph::JointOp& update);
// The packed forms of a weight, as indices into the ops of the repacking phase.
std::vector<int32_t> derived_weights_of(const graph::JointGraph& joint, int32_t weight);
// Aligned bytes of a value, and of all states of an update op.
int64_t stored_bytes(const graph::JointGraph& joint, int32_t value);
int64_t state_bytes(const graph::JointGraph& joint, const graph::JointOp& update);
// The format of a value in memory. A packed weight that comes in parts is a copy with 16 bits per element.
const Format& stored_format(const graph::JointGraph& joint, int32_t value);
// By problem value: an op uses it; the first op that reads it, or the number of ops.
std::vector<bool> used_by_ops(const plan::Problem& problem);
std::vector<size_t> first_readers(const plan::Problem& problem);
// By joint value: it is a state that may be cut into parts.
std::vector<bool> splitting(const graph::JointGraph& joint);

}  // namespace cairn::engine
