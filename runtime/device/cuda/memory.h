// Blocks: device memory by cudaMalloc, host memory registered with the driver, a file.
#pragma once
#include <memory>
#include <optional>

#include "runtime/device/cuda/state.h"
#include "runtime/device/host/disk.h"
#include "runtime/device/host/pinned.h"

namespace cairn::device::cuda {

// Host memory of exact size, every page present (touched by several threads), registered with the driver
// once: copies then run without the host. kOutOfMemory with the fault.
class HostMemory {
 public:
  HostMemory(State& state, Tier tier, int64_t bytes);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  char* address() const { return memory_.address(); }
  int64_t bytes() const { return bytes_; }

 private:
  State& state_;
  const Tier tier_;
  const int64_t bytes_;
  const host::Memory memory_;
};

// A disk block, with the host memory that its copies go through: a slot per direction.
struct DiskMemory {
  DiskMemory(State& state, int64_t bytes);
  static constexpr int64_t kSlotBytes = int64_t{16} << 20;
  host::Disk disk;
  HostMemory out, in;
};

class CudaBlock : public Block {
 public:
  CudaBlock(std::shared_ptr<State> state, Tier tier, int64_t bytes);
  ~CudaBlock() override;
  Tier tier() const override { return tier_; }
  int64_t bytes() const override { return bytes_; }
  void* address() const override { return host_ ? host_->address() : device_; }
  int64_t pinned_bytes() const override { return host_ ? bytes_ : 0; }
  int64_t staging_bytes() const override;
  void write(int64_t offset, const void* from, int64_t bytes) override;
  void read(int64_t offset, void* to, int64_t bytes) const override;
  bool borrow(int64_t offset, int64_t bytes, std::shared_ptr<const InputFile> file, uint64_t at) override {
    if (disk_ == nullptr) return false;
    disk_->disk.file().borrow(offset, bytes, std::move(file), at);
    return true;
  }
  void own(int64_t offset, int64_t bytes) override {
    if (disk_ != nullptr) disk_->disk.file().own(offset, bytes);
  }
  DiskMemory& disk() const { return *disk_; }

 private:
  const std::shared_ptr<State> state_;
  const Tier tier_;
  const int64_t bytes_;
  void* device_ = nullptr;
  std::optional<HostMemory> host_;
  std::unique_ptr<DiskMemory> disk_;
};

}  // namespace cairn::device::cuda
