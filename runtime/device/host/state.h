// What the blocks, queues and events of one CPU device share. They hold it alive: release order never
// matters.
#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/base/team.h"
#include "runtime/device/device.h"
#include "runtime/device/host/throttle.h"

namespace cairn::device::host {

// The first failure of queued work. Set once, read by all.
class Poison {
 public:
  bool set() const { return set_.load(std::memory_order_acquire); }
  void keep() noexcept {  // the exception in flight, which needs no memory
    std::lock_guard lock(mutex_);
    if (set()) return;
    failure_ = std::current_exception();
    set_.store(true, std::memory_order_release);
  }
  void keep(const Error& error) noexcept {
    try {
      throw Error(error);
    } catch (...) {
      keep();
    }
  }
  // Throws it as an Error of the caller's own.
  void raise() const {
    if (!set()) return;
    std::lock_guard lock(mutex_);
    try {
      std::rethrow_exception(failure_);
    } catch (const Error& error) {
      throw Error(error);
    } catch (const std::bad_alloc&) {
      throw Error::of_literal(Code::kOutOfMemory, "queued work ran out of memory");
    } catch (const std::exception& error) {
      fail(Code::kInternal, "queued work failed: ", error.what());
    } catch (...) {
      throw Error::of_literal(Code::kInternal, "queued work failed");
    }
  }

 private:
  std::atomic<bool> set_{false};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
};

class HostGroup : public Group {
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
  const std::shared_ptr<HostGroup> shared_group = std::make_shared<HostGroup>();
  Throttle out_link, in_link;
  std::unique_ptr<ThreadTeam> team;  // under the compute lanes, which take turns; nullptr: they run alone
};

}  // namespace cairn::device::host
