// What the library and its device plugins (libcairn_cuda.so) must agree on, as they pass C++ types to each
// other.
#pragma once
#include <cstdint>

#include "runtime/base/kernel.h"
#include "runtime/device/device.h"

namespace cairn::device {

// Raised by hand when a type that library and plugin share changes without a change of its size.
inline constexpr uint32_t kPluginRevision = 3;

// The plugin exports this number as `cairn_device_plugin_abi`; another one is refused before anything is
// called.
inline constexpr uint32_t kPluginAbi = [] {
  uint32_t abi = kPluginRevision;
  for (const size_t size :
       {sizeof(DeviceOptions), sizeof(DeviceInfo), sizeof(Copy), sizeof(TierCount), sizeof(kernels::Registry),
        sizeof(kernels::Signature), sizeof(kernels::Call), sizeof(TensorDesc), sizeof(Error)})
    abi = abi * 31 + static_cast<uint32_t>(size);
  return abi;
}();

// A device of a plugin's. kUnsupported, with the reason: none can be had here.
std::shared_ptr<Device> open_plugin(std::string_view name, const DeviceOptions& options);

}  // namespace cairn::device
