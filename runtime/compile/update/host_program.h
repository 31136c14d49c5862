// The programs of updates by the host's processors: of deferred ones, which the next run begins with, and of others, beside
// backward. What they use on the host tier is used where it lies; what lives on the disk streams through a ring there: the next
// pieces are read while one is updated and those before are written back. The lanes are ordered by events alone.
#pragma once
#include <vector>

#include "runtime/compile/kernel_maker.h"
#include "runtime/compile/update/pieces.h"

namespace cairn::engine {

// CompiledPlan::host_program, beside_backward, host_done. pieces: of what streams, in the order of the updates.
void assemble_host_updates(CompiledPlan& plan, KernelMaker& maker, const std::vector<Piece>& pieces);

}  // namespace cairn::engine
