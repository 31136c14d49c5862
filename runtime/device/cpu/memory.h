// Blocks of the CPU device's three tiers: memory for the arena and the host tier, a file for the disk tier.
#pragma once
#include <memory>

#include "runtime/device/cpu/state.h"

namespace cairn::device::cpu {

// A file of fixed size without a name. read/write throw kIo naming directory, offset and bytes.
class DiskFile {
 public:
  DiskFile(const std::string& directory, int64_t bytes);
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  void read(void* to, int64_t offset, int64_t bytes) const;
  void write(const void* from, int64_t offset, int64_t bytes) const;

 private:
  std::string directory_;
  int descriptor_ = -1;
};

class CpuBlock : public Block {
 public:
  CpuBlock(std::shared_ptr<State> state, Tier tier, int64_t bytes);
  ~CpuBlock() override;
  Tier tier() const override { return tier_; }
  int64_t bytes() const override { return bytes_; }
  void* address() const override { return address_; }
  const DiskFile& file() const { return *file_; }

 private:
  std::shared_ptr<State> state_;
  Tier tier_;
  int64_t bytes_;
  void* address_ = nullptr;
  std::unique_ptr<DiskFile> file_;
};

}  // namespace cairn::device::cpu
