#include <dlfcn.h>

#include "kernels/registry.h"
#include "runtime/device/cpu/device.h"
#include "runtime/device/device.h"
#include "runtime/device/plugin.h"

namespace cairn::device {
namespace {

using MakeDevice = std::shared_ptr<Device> (*)(std::string_view name, const DeviceOptions& options);

std::shared_ptr<Device> open_cpu(std::string_view, const DeviceOptions& options) {
  return cpu::open("cpu", kernels::cpu_registry(), options);
}

std::shared_ptr<Device> open_reference(std::string_view, const DeviceOptions& options) {
  return cpu::open("reference", kernels::reference_registry(), options);
}

// The plugin is looked up by name beside the other libraries, and exports
//   const uint32_t cairn_device_plugin_abi = kPluginAbi;
//   void cairn_device_plugin_open(std::string_view name, const DeviceOptions&, std::shared_ptr<Device>*
//   out_device);
// It stays loaded once opened: its devices' code lives in it.
std::shared_ptr<Device> open_cuda(std::string_view name, const DeviceOptions& options) {
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

struct Known {
  std::string_view name;
  bool numbered;  // "name:N", too
  MakeDevice make;
  // Without opening it; nullptr: only an open device knows.
  DeviceInfo (*describe)(std::string_view name, const DeviceOptions& options);
};
constexpr Known kKnown[] = {{"cpu", false, open_cpu, cpu::describe},
                            {"reference", false, open_reference, cpu::describe},
                            {"cuda", true, open_cuda, nullptr}};

bool matches(const Known& known, std::string_view name) {
  if (name == known.name) return true;
  if (!known.numbered || !name.starts_with(known.name)) return false;
  const std::string_view rest = name.substr(known.name.size());
  return rest.size() > 1 && rest.size() < 5 && rest[0] == ':' &&
         rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

}  // namespace

std::shared_ptr<Device> open(std::string_view name, const DeviceOptions& options) {
  std::string names;
  for (const Known& known : kKnown) {
    if (matches(known, name)) return known.make(name, options);
    names += cat(names.empty() ? "" : ", ", known.name, known.numbered ? ":N" : "");
  }
  fail(Code::kNotFound, "no device '", name, "'; known are ", names);
}

std::vector<DeviceInfo> list() {
  std::vector<DeviceInfo> found;
  for (const Known& known : kKnown) try {
      found.push_back(known.describe != nullptr ? known.describe(known.name, {})
                                                : open(known.name, {})->info());
    } catch (const Error& error) {
      if (error.code() != Code::kUnsupported) throw;  // a plugin that is not there is no failure
    }
  return found;
}

}  // namespace cairn::device
