// A group's work as a CUDA graph: one launch for a whole micro-batch, copies included.
#pragma once
#include "runtime/device/cuda/queue.h"

namespace cairn::device::cuda {

void begin_recording(CudaGroup&);
// Throws what went wrong between the two calls; the group is then not recording.
std::unique_ptr<Recording> end_recording(const std::shared_ptr<CudaGroup>&);

}  // namespace cairn::device::cuda
