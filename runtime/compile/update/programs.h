// The programs that run between micro-batches. The arena above the persistent values is free then, and what lives
// in a tier streams through it:
//
//   persistent | workspace of a kernel | values in one piece, of one update or two | ring of pieces of optimizer state
//
// A piece comes in, its ops run, it goes out; the next pieces come in meanwhile, as far as the ring has room.
// Events alone order the queues: a copy in waits for the copy out of what lay there before.
#pragma once
#include <vector>

#include "runtime/compile/kernel_maker.h"
#include "runtime/compile/update/pieces.h"
#include "runtime/compile/update/room.h"

namespace cairn::engine {

// Packs weights where neither the weight nor its packed form streams.
Program repack_program(const Placed& plan, KernelMaker& maker, const Room& room);
// Packs weights where one of the two streams.
Program fetched_repack_program(const Placed& plan, KernelMaker& maker, const Room& room);
Program norm_program(const Placed& plan, KernelMaker& maker, const Room& room);
Program statistics_program(const Placed& plan, KernelMaker& maker, const Room& room);
// Updates with no copy between them are one launch where the backend has that. It also packs the weights, or ops
// right after it do: after an update all packed weights are fresh.
Program update_program(const Placed& plan, KernelMaker& maker, const Room& room, std::vector<Piece> pieces);

}  // namespace cairn::engine
