// The host's hooks, and devices opened with them.
#pragma once
#include <memory>
#include <string>

#include "cairn/cairn.h"
#include "capi/src/handle.h"
#include "runtime/device/device.h"

struct cairn_instance : cairn::capi::Handle<cairn_instance> {
  cairn::HostAllocator allocator;
  void (*log)(void* user, int32_t level, const char* message) = nullptr;
  void* log_user = nullptr;

  void tell(int32_t level, const std::string& message) const noexcept {
    if (log == nullptr) return;
    try {
      log(log_user, level, message.c_str());
    } catch (...) {  // a hook's failure is none of the call's: what it tells of has happened
    }
  }
};

struct cairn_device : cairn::capi::Handle<cairn_device> {
  std::shared_ptr<cairn::device::Device> device;
  std::string rates;  // costs::RateRequest::how
};
