// A group's work as a CUDA graph: one launch for a micro-batch, copies included.
#pragma once
#include "runtime/device/cuda/queue.h"

namespace cairn::device::cuda {

// measured: as Device::begin_recording.
void begin_recording(CudaGroup&, const Recording* measured);
// Throws what went wrong between the two calls; the group is then not recording.
std::unique_ptr<Recording> end_recording(const std::shared_ptr<CudaGroup>&);

}  // namespace cairn::device::cuda
