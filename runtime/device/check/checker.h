// What a checked device knows: its living blocks with their histories, the clocks of its queues and of the
// host. All order is fixed when work is submitted (events are snapshots), so every rule can be checked there,
// without luck in timing.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "runtime/device/check/history.h"
#include "runtime/device/device.h"

namespace cairn::device::check {

// One block's bytes. Memory blocks are found by address, too.
struct Region {
  Tier tier;
  int64_t bytes;
  uintptr_t address;  // 0: disk
  History history;
};

class Checker {
 public:
  explicit Checker(std::shared_ptr<Device> inner) : device(std::move(inner)) {}

  const std::shared_ptr<Device> device;
  mutable std::mutex mutex;  // guards all below

  size_t add_queue() { return queues_++; }
  VectorClock& clock(size_t queue);
  VectorClock& host() { return host_; }
  // Starts a piece of work: it comes after everything the host has seen.
  Epoch start(size_t queue);

  Region* add_region(Tier tier, int64_t bytes, const void* address);
  // The bytes may be used again by anybody: no work may still touch them. After a violation the block is held
  // until the device goes, so that the work that uses it does no harm.
  void remove_region(Region* region, std::unique_ptr<Block> block);
  // The living region around [address, address + bytes); nullptr if there is none.
  Region* find(const void* address, int64_t bytes);

  // Checks and notes one access. False: a violation, the work must not run.
  bool access(Region& region, int64_t offset, int64_t bytes, bool write, const Access& access);
  // The host has seen all this.
  void synchronised(const VectorClock& reached);

  void violation(std::string message);  // the first is kept
  void raise() const;
  bool poisoned() const { return poisoned_.load(); }

 private:
  std::map<const Region*, std::unique_ptr<Region>> regions_;
  std::map<uintptr_t, Region*> by_address_;
  std::vector<std::unique_ptr<Block>> held_;
  std::map<size_t, VectorClock> clocks_;
  VectorClock host_;
  size_t queues_ = 0;
  std::optional<Error> error_;
  std::atomic<bool> poisoned_{false};
};

}  // namespace cairn::device::check
