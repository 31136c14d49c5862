// A file of fixed size without a name: the disk tier's bytes.
#pragma once
#include <string>

#include "runtime/device/host/state.h"

namespace cairn::device::host {

// Whole pages go past the system's page cache where the file system has that (O_DIRECT); bytes of pages that
// are not whole go through it. The system keeps the two coherent, and nobody touches the same bytes at once.
// Thread-safe. All throw kIo with the fault, naming directory, offset and bytes.
class DiskFile {
 public:
  DiskFile(const State& state, int64_t bytes);  // reserves all bytes; the error names what is free, too
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  // Direct where `memory` and `offset` differ by whole pages.
  void transfer(bool writes, char* memory, int64_t offset, int64_t bytes) const;
  bool direct() const { return direct_ >= 0; }

 private:
  void pages(int descriptor, bool writes, char* memory, int64_t offset, int64_t bytes) const;

  const State& state_;
  int buffered_ = -1, direct_ = -1;
};

}  // namespace cairn::device::host
