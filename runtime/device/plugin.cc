// Opens the library with devices for NVIDIA GPUs.
#include "runtime/device/plugin.h"

#include <dlfcn.h>

namespace cairn::device {

// The plugin is looked up by name where the other libraries are, and exports
//   const uint32_t cairn_device_plugin_abi = kPluginAbi;
//   void cairn_device_plugin_open(std::string_view name, const DeviceOptions&, std::shared_ptr<Device>*
//   out_device);
// It is never unloaded once opened: it holds its devices' code.
std::shared_ptr<Device> open_plugin(std::string_view name, const DeviceOptions& options) {
  constexpr const char* kLibrary = "libcairn_cuda.so";
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  const char* const reason = library == nullptr ? dlerror() : nullptr;
  require(library != nullptr, Code::kUnsupported, "device '", name,
          "': no CUDA plugin: ", reason != nullptr ? reason : "it cannot be loaded");
  using Open = void (*)(std::string_view, const DeviceOptions&, std::shared_ptr<Device>*);
  const auto plugin_open = reinterpret_cast<Open>(dlsym(library, "cairn_device_plugin_open"));
  const auto* const abi = static_cast<const uint32_t*>(dlsym(library, "cairn_device_plugin_abi"));
  Dl_info where = {};
  const void* const known = plugin_open != nullptr ? reinterpret_cast<const void*>(plugin_open) : abi;
  const bool found = known != nullptr && dladdr(known, &where) != 0 && where.dli_fname != nullptr;
  const char* const path = found ? where.dli_fname : kLibrary;
  require(plugin_open != nullptr && abi != nullptr, Code::kUnsupported, "device '", name, "': ", path,
          " is no plugin of this version of cairn; install the one that was built with this library");
  require(*abi == kPluginAbi, Code::kUnsupported, "device '", name, "': ", path,
          " was built with another version of "
          "cairn (ABI ",
          *abi, ", this library has ", kPluginAbi, "); install the one that was built with it");
  std::shared_ptr<Device> device;
  plugin_open(name, options, &device);
  require(device != nullptr, Code::kUnsupported, "device '", name, "': the CUDA plugin gave none");
  return device;
}

}  // namespace cairn::device
