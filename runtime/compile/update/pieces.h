// How offloaded optimizer state streams through an update. Updates are cut into parts; parts are put together to
// pieces; a piece is one copy.
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "runtime/base/checked.h"
#include "runtime/compile/stages.h"
#include "runtime/compile/update/streamed.h"

namespace cairn::engine {

// The elements [begin, begin + count) of the tensors of an update op: all of them where a state does not split.
struct Part {
  int32_t op;  // index into the update phase
  int64_t begin, count;
  bool states = false;                                      // the piece has its states
  std::array<int64_t, update_op::kMaxStates> offsets = {};  // of each state, in the piece
  // The same of the weight, the gradient and the packed weight, where they live in a tier and come in parts; else -1.
  int64_t weight = -1, gradient = -1, packed = -1;
};
// One copy of states, and the same elements of weights and gradients, which have copies of their own.
struct Piece {
  Tier tier;
  int64_t tier_offset = 0, bytes = 0;
  int64_t beside = 0;  // bytes of weights and gradients, which lie after the states in the ring
  std::vector<Part> parts;
};
struct Pieces {
  std::vector<Piece> device;  // of the device's updates, in their order
  std::vector<Piece> host;    // of the host's updates, in their order, deferred ones first
};
struct PlacedPieces {
  Placed plan;
  Pieces pieces;
};
// Gives everything in a tier its place there. Optimizer state streams as pieces of at most `most` bytes (for
// updates on the host: of a slot of their ring), or of the state of one update that does not split. A piece's parts
// need at most `max_masters` bytes of values that lie in one piece on the device next to it (whole_values()); or
// the piece has one part, of one weight.
PlacedPieces place_offloaded(Placed plan, int64_t most, int64_t max_masters);

// Where an update may be cut: each state's part has to begin with a block of its format.
class Cut {
 public:
  // beside: further values that are cut at the same elements. resident: values that are used where they are stored;
  // their parts have to begin at aligned addresses.
  Cut(const graph::JointGraph& joint, std::span<const int32_t> states, std::span<const int32_t> beside,
      std::span<const int32_t> resident) {
    for (const auto& list : {states, beside})
      for (const int32_t value : list) formats_.push_back(&stored_format(joint, value));
    aligned_ = formats_;
    for (const int32_t value : resident) aligned_.push_back(&stored_format(joint, value));
    for (const Format* f : aligned_) block_ = std::max(block_, f->block);
  }
  // Bytes of so many elements of everything that comes along.
  int64_t bytes(int64_t elements) const {
    int64_t sum = 0;
    for (const Format* f : formats_) sum += align_up(f->bytes(elements), kAlignment);
    return sum;
  }
  // The most elements of a part that fits into `room` and is not the last of its tensor. Formats in blocks, and
  // everything on a disk, are cut at multiples of pages or of the alignment where there is room for that, so that
  // little is lost between parts.
  int64_t most(int64_t room, Tier tier) const {
    if (block_ == 1 && tier != Tier::kDisk) return parts_of(kAlignment, room, 1);
    for (const int64_t quantum : {kPageBytes, kAlignment})
      if (const int64_t count = parts_of(quantum, room, 0); count > 0) return count;
    return parts_of(1, room, 1);
  }

 private:
  // As many units as fit, at least `least`. A unit is the smallest part whose bytes are multiples of the quantum.
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
