// NVIDIA GPUs through the CUDA runtime: one arena by cudaMalloc, registered host memory, streams, graphs.
#pragma once
#include <memory>
#include <string_view>

#include "runtime/device/device.h"

namespace cairn::device::cuda {

// "cuda:N" (or "cuda", the first). kUnsupported: no driver, an old one, no such GPU, a GPU before compute
// capability 8.0.
std::shared_ptr<Device> open(std::string_view name, const DeviceOptions& options);

// Static facts of GPU `ordinal`, and rates by architecture (analytic). As `open` otherwise.
DeviceInfo describe(std::string_view name, int ordinal);

}  // namespace cairn::device::cuda
