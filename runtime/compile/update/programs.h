// The programs around a micro-batch, internal to this folder. All but the persistent values of the arena is free then,
// and what lives in a tier streams through it:
//
//   persistent | workspace of a kernel | whole values, one update's or two | ring of pieces of optimizer state
//
// A piece comes in, its ops run, it goes out; the next ones come in meanwhile, as far as the ring goes round.
// The lanes are ordered by events alone: a copy in waits for the copy out of what lay there before.
#pragma once
#include <vector>

#include "runtime/compile/kernel_maker.h"
#include "runtime/compile/update/pieces.h"
#include "runtime/compile/update/room.h"

namespace cairn::engine {

// Of weights and packed forms that are both on the device, or used where they lie.
Program repack_program(CompiledPlan& plan, KernelMaker& maker, const Room& room);
// Of weights or packed forms that copies bring from a tier, or take there.
Program fetched_repack_program(CompiledPlan& plan, KernelMaker& maker, const Room& room);
Program norm_program(CompiledPlan& plan, KernelMaker& maker, const Room& room);
Program statistics_program(CompiledPlan& plan, KernelMaker& maker, const Room& room);
// Updates with no copy between them are one launch where the backend has that, and packed weights are made in it or
// right behind: after an update all packed weights are fresh.
Program update_program(CompiledPlan& plan, KernelMaker& maker, const Room& room, std::vector<Piece> pieces);

}  // namespace cairn::engine
