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

class CpuGroup : public Group {
 public:
  bool poisoned() const override { return poison.set(); }
  Poison poison;
};

struct State {
  State(DeviceInfo device_info, const DeviceOptions& options)
      : info(std::move(device_info)),
        allocator(options.allocator.allocate != nullptr ? options.allocator : system_allocator()),
        system_memory(options.allocator.allocate == nullptr),
        pinning(options.pinning),
        disk_fault(options.disk_fault),
        out_link(options.link_bytes_per_second),
        in_link(options.link_bytes_per_second) {}

  const DeviceInfo info;
  const HostAllocator allocator;
  const bool system_memory;  // the system's allocator: blocks come zeroed
  const Pinning pinning;
  const std::function<int64_t(bool, int64_t, int64_t)> disk_fault;
  Ledger ledger;
  const std::shared_ptr<CpuGroup> shared_group = std::make_shared<CpuGroup>();
  Throttle out_link, in_link;
};

}  // namespace cairn::device::cpu
