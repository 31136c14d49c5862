#include "runtime/device/cuda/state.h"

#include <algorithm>
#include <thread>

namespace cairn::device::cuda {

// For errors of the host tier: it is this machine's memory that they are about.
DeviceInfo State::host_info(const DeviceInfo& info) {
  DeviceInfo host;
  host.name = info.name;
  host.memory_bytes = info.host_memory_bytes;
  host.threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  host.disk_directory = info.disk_directory;
  return host;
}

}  // namespace cairn::device::cuda
