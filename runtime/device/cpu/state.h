// What the blocks, queues and events of one CPU device share. They hold it alive: release order never
// matters.
#pragma once
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/device/cpu/throttle.h"
#include "runtime/device/device.h"

namespace cairn::device::cpu {

// The first error of queued work. Set once, read by all.
class Poison {
 public:
  bool set() const { return set_.load(std::memory_order_acquire); }
  void keep(Error error) {
    std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = std::move(error);
    set_.store(true, std::memory_order_release);
  }
  void raise() const {
    if (!set()) return;
    std::lock_guard lock(mutex_);
    throw *error_;
  }

 private:
  std::atomic<bool> set_{false};
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

struct State {
  State(DeviceInfo device_info, const DeviceOptions& options)
      : info(std::move(device_info)),
        allocator(options.allocator.allocate != nullptr ? options.allocator : system_allocator()),
        system_memory(options.allocator.allocate == nullptr),
        out_link(options.link_bytes_per_second),
        in_link(options.link_bytes_per_second) {}

  const DeviceInfo info;
  const HostAllocator allocator;
  const bool system_memory;  // the system's allocator: blocks come zeroed
  Ledger ledger;
  Poison poison;
  Throttle out_link, in_link;
};

}  // namespace cairn::device::cpu
