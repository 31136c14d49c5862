// Moves bytes between blocks of the CPU device, on the calling (copy) thread and its helper.
#pragma once
#include <span>
#include <vector>

#include "runtime/device/cpu/memory.h"
#include "runtime/device/host/splitter.h"

namespace cairn::device::cpu {

struct Part {
  int64_t to_offset, from_offset, bytes;
};

// Device to device, device to or from host (paced by the link, if it has a rate), memory to or from disk. kIo
// from the disk; kUnsupported disk to disk. The ranges must lie inside their blocks. `follows`: the copy was
// waiting for the one before it, so the link never was idle. `pieces`: room for the parts of a copy to or from disk.
void copy(host::State& state, host::Splitter& splitter, const CpuBlock& to, const CpuBlock& from,
          std::span<const Part> parts, std::vector<host::Piece>& pieces, bool follows);

}  // namespace cairn::device::cpu
