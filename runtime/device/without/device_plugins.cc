// Stands in for runtime/device/plugin.cc where CAIRN_DEVICE_PLUGINS is off.
#include "runtime/device/plugin.h"

namespace cairn::device {

std::shared_ptr<Device> open_plugin(std::string_view name, const DeviceOptions&) {
  fail(Code::kUnsupported, "device '", name,
       "': this libcairn was built with CAIRN_DEVICE_PLUGINS=OFF and opens no libraries; build it with "
       "-DCAIRN_DEVICE_PLUGINS=ON");
}

}  // namespace cairn::device
