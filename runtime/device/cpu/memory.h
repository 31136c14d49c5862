// Blocks of the CPU device's three tiers: memory for the arena and the host tier, a file for the disk tier.
#pragma once
#include <memory>
#include <optional>

#include "runtime/device/host/disk.h"
#include "runtime/device/host/pinned.h"

namespace cairn::device::cpu {

class CpuBlock : public Block {
 public:
  CpuBlock(std::shared_ptr<host::State> state, Tier tier, int64_t bytes);
  ~CpuBlock() override;
  Tier tier() const override { return tier_; }
  int64_t bytes() const override { return bytes_; }
  void* address() const override { return memory_ ? memory_->address() : nullptr; }
  int64_t pinned_bytes() const override { return memory_ ? memory_->pinned_bytes() : 0; }
  int64_t staging_bytes() const override { return disk_ ? disk_->staging_bytes() : 0; }
  bool borrow(int64_t offset, int64_t bytes, std::shared_ptr<const InputFile> file, uint64_t at) override {
    if (disk_ == nullptr) return false;
    disk_->file().borrow(offset, bytes, std::move(file), at);
    return true;
  }
  void own(int64_t offset, int64_t bytes) override {
    if (disk_ != nullptr) disk_->file().own(offset, bytes);
  }
  host::Disk& disk() const { return *disk_; }

 private:
  std::shared_ptr<host::State> state_;
  Tier tier_;
  int64_t bytes_;
  std::optional<host::Memory> memory_;
  std::unique_ptr<host::Disk> disk_;
};

}  // namespace cairn::device::cpu
