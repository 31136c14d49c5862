// The embedded default: kernels on all processors through one compute lane, copies on threads of their own.
#pragma once
#include <memory>

#include "runtime/device/host/state.h"

namespace cairn::device::cpu {

// `name` is what DeviceInfo reports: "cpu" or "reference", as the registry. Starts the compute threads; those
// of the lanes come with the queues. kOutOfMemory if the system does not give them.
std::shared_ptr<Device> open(std::string_view name, const kernels::Registry& registry,
                             const DeviceOptions& options);

// Static facts: processor, instruction sets, physical memory; rates by instruction set and threads
// (analytic).
DeviceInfo describe(std::string_view name, int threads);
DeviceInfo describe(std::string_view name, const DeviceOptions& options);  // what open() would report

}  // namespace cairn::device::cpu
