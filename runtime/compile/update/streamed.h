// What of an update op streams, and how large it is.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/compile/program.h"

namespace cairn::engine {

// Copies of the update are of this size where the arena has room for three: near a link's full rate, and
// small beside the whole, so that both directions and the kernels overlap.
inline constexpr int64_t kPieceBytes = int64_t{4} << 20;
// The least that the arena has room for, three times.
inline constexpr int64_t kMinPieceBytes = int64_t{32} << 10;
inline constexpr int64_t kSlots = 3;

// The least that the arena has room for between micro-batches so that offloaded optimizer state can stream
// through: three pieces, or the largest that does not split.
int64_t least_ring_bytes(const CompiledPlan& plan);

// Of updates on the host, what comes from the disk at once at most.
inline int64_t host_piece_bytes(const CompiledPlan& plan) {
  return plan.host_ring_bytes / kSlots / kPageBytes * kPageBytes;
}

// Where what an update op streams lives: its states, or else what it has whole or in parts; nullptr: everything is
// on the device, or used where it lies.
const OffloadedPlace* streamed_from(const CompiledPlan& plan, const graph::JointOp& update);
// The states that an update op changes: joint values, in the order of its outputs.
std::span<const int32_t> states_of(const graph::JointOp& update);
// The packed forms of the weight, as indices into the repacking's ops.
std::vector<int32_t> packed_weights_of(const graph::JointGraph& joint, int32_t weight);
// Bytes of a value on the device, aligned; of all states of an update op.
int64_t stored_bytes(const graph::JointGraph& joint, int32_t value);
int64_t state_bytes(const graph::JointGraph& joint, const graph::JointOp& update);
// How a value's elements lie in memory; a packed weight that comes in parts is a copy of 16 bits each.
const Format& stored_format(const graph::JointGraph& joint, int32_t value);
// By value: may it be cut into parts that come and go one after the other?
std::vector<bool> splitting(const graph::JointGraph& joint);

}  // namespace cairn::engine
