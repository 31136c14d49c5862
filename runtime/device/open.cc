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

struct Known {
  std::string_view name;
  bool numbered;  // "name:N", too
  MakeDevice make;
  // Without opening it; nullptr: only an open device knows.
  DeviceInfo (*describe)(std::string_view name, const DeviceOptions& options);
};
constexpr Known kKnown[] = {{"cpu", false, open_cpu, cpu::describe},
                            {"reference", false, open_reference, cpu::describe},
                            {"cuda", true, open_plugin, nullptr}};

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
