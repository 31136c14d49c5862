// The programs of updates by the host's processors: of deferred ones, with which the next run begins, and of those
// concurrent with backward. Values on the host tier are used in place. Values on the disk stream through a ring of
// the host tier: pieces are read, updated and written back at the same time, ordered by events alone.
#pragma once
#include <vector>

#include "runtime/compile/kernel_maker.h"
#include "runtime/compile/update/pieces.h"

namespace cairn::engine {

struct HostPrograms {
  Program deferred, beside_backward;  // CompiledPlan::host_program, beside_backward
  std::map<int32_t, int32_t> done;    // CompiledPlan::host_done
};
// pieces: of what streams, in the order of host_update_order().
HostPrograms host_programs(const Placed& plan, KernelMaker& maker, const std::vector<Piece>& pieces);

}  // namespace cairn::engine
