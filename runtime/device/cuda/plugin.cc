// What libcairn_cuda.so exports (see runtime/device/open.cc).
#include "runtime/device/plugin.h"

#include "runtime/device/cuda/device.h"

extern "C" __attribute__((visibility("default"))) const uint32_t cairn_device_plugin_abi;
const uint32_t cairn_device_plugin_abi = cairn::device::kPluginAbi;

extern "C" __attribute__((visibility("default"))) void cairn_device_plugin_open(
    std::string_view name, const cairn::device::DeviceOptions& options,
    std::shared_ptr<cairn::device::Device>* out_device) {
  *out_device = cairn::device::cuda::open(name, options);
}
