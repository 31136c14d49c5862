// How offloaded optimizer state travels in the update: cut into parts of updates, which are put together to pieces, each
// one copy.
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "runtime/base/checked.h"
#include "runtime/compile/program.h"
#include "runtime/compile/update/streamed.h"

namespace cairn::engine {

// Elements [begin, begin + count) of an update op's tensors, whose optimizer state lies in a piece: all of them
// where the state does not split, or the same elements of each state.
struct Part {
  int32_t op;  // index into the update phase
  int64_t begin, count;
  bool states = false;                                      // they come with the piece
  std::array<int64_t, update_op::kMaxStates> offsets = {};  // of each state, bytes in the piece
  // The same of the elements of the weight, the gradient and the packed weight, where they live in a tier and come in parts;
  // else -1.
  int64_t weight = -1, gradient = -1, packed = -1;
};
// What travels as one copy, and beside it the elements of weights and gradients, which lie whole in their tiers.
struct Piece {
  Tier tier;
  int64_t tier_offset = 0, bytes = 0;
  int64_t beside = 0;  // bytes in the ring behind those that travel as one
  std::vector<Part> parts;
};
struct Pieces {
  std::vector<Piece> device;  // of updates there, in the order of the update
  std::vector<Piece>
      host;  // of updates on the host, in the order in which it makes them, deferred ones first
};
// Gives all offloaded state its place in its tier, optimizer state as pieces of at most `most` bytes (those of updates on the
// host: of its ring's slots), or of one update's state that does not split, and what is used where it lies whole: fills
// OffloadedPlace::extents and plan.offloaded_bytes. The master weights away from the device of a piece's parts are whole in it,
// and take at most `max_masters` bytes; or the piece has one part, of one weight.
Pieces place_offloaded_state(CompiledPlan& plan, int64_t most, int64_t max_masters);

// How the states of an update op are cut into parts: where each state's part begins a block of its format.
class Cut {
 public:
  // beside: further values whose same elements come along. resident: those that stay where they are, on the device or in
  // a tier within reach, whose parts must begin at aligned addresses.
  Cut(const graph::JointGraph& joint, std::span<const int32_t> states, std::span<const int32_t> beside,
      std::span<const int32_t> resident) {
    for (const auto& list : {states, beside})
      for (const int32_t value : list) formats_.push_back(&stored_format(joint, value));
    aligned_ = formats_;
    for (const int32_t value : resident) aligned_.push_back(&stored_format(joint, value));
    for (const Format* f : aligned_) block_ = std::max(block_, f->block);
  }
  // Of so many elements of all that comes along, each aligned.
  int64_t bytes(int64_t elements) const {
    int64_t sum = 0;
    for (const Format* f : formats_) sum += align_up(f->bytes(elements), kAlignment);
    return sum;
  }
  // The most elements of a part that fits into `room` and has others of its tensor behind it. Blocks go by whole pages or
  // whole alignments where there is room for that, so that little is lost between parts; other elements, too, on a disk.
  int64_t most(int64_t room, Tier tier) const {
    if (block_ == 1 && tier != Tier::kDisk) return parts_of(kAlignment, room, 1);
    for (const int64_t quantum : {kPageBytes, kAlignment})
      if (const int64_t count = parts_of(quantum, room, 0); count > 0) return count;
    return parts_of(1, room, 1);
  }

 private:
  // In the smallest parts whose bytes are all multiples of the quantum, at least `least` of them.
  int64_t parts_of(int64_t quantum, int64_t room, int64_t least) const {
    int64_t unit = block_;
    while (std::any_of(formats_.begin(), formats_.end(),
                       [&](const Format* f) { return f->bytes(unit) % quantum != 0; }) ||
           std::any_of(aligned_.begin(), aligned_.end(),
                       [&](const Format* f) { return f->bytes(unit) % kAlignment != 0; }))
      unit *= 2;
    return std::max(room / bytes(unit), least) * unit;
  }

  std::vector<const Format*> formats_, aligned_;
  int64_t block_ = 1;
};

}  // namespace cairn::engine
