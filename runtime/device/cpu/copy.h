// Moves bytes between blocks of the CPU device, on the calling (copy) thread and its helper.
#pragma once
#include "runtime/device/cpu/memory.h"
#include "runtime/device/cpu/splitter.h"

namespace cairn::device::cpu {

// Device to device, device to or from host (paced by the link, if it has a rate), memory to or from disk. kIo
// from the disk; kUnsupported disk to disk. The ranges must lie inside their blocks.
void copy(State& state, Splitter& splitter, const CpuBlock& to, int64_t to_offset, const CpuBlock& from,
          int64_t from_offset, int64_t bytes);

}  // namespace cairn::device::cpu
