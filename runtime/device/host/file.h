// A file of fixed size without a name: the disk tier's bytes.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runtime/base/os/file.h"
#include "runtime/device/host/state.h"

namespace cairn::device::host {

// How many of the bytes of a transfer to ask the system for at once, or -errno to fail with.
using DiskFault = std::function<int64_t(bool writes, int64_t offset, int64_t bytes)>;

// Full pages bypass the system's page cache where the file system allows it (O_DIRECT); parts of pages go
// through it. The system keeps the two coherent, and callers never touch the same bytes at once.
// Thread-safe. All throw kIo with the fault, naming directory, offset and bytes.
class DiskFile {
 public:
  // Reserves all bytes, so that a disk that is too full says so now; the error names what is free, too. `fault`
  // must outlive the file; it may be empty.
  DiskFile(std::string directory, int64_t bytes, const DiskFault& fault);
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  // Full pages bypass the page cache where `suits` says so.
  void transfer(bool writes, char* memory, int64_t offset, int64_t bytes) const;
  // As Block::borrow() and Block::own(): nothing is transferred meanwhile.
  void borrow(int64_t offset, int64_t bytes, std::shared_ptr<const InputFile> file, uint64_t at);
  void own(int64_t offset, int64_t bytes);
  bool direct() const { return direct_ >= 0; }
  // Whether the system moves bytes directly between this memory and this place in the file.
  bool suits(const char* memory, int64_t offset) const {
    return direct() && (static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory)) - offset) % unit_ == 0;
  }

 private:
  struct Borrowed {
    int64_t bytes;
    std::shared_ptr<const InputFile> file;
    uint64_t at;
  };
  void reserve(int64_t bytes) const;
  void transfer_own(bool writes, char* memory, int64_t offset, int64_t bytes) const;
  void pages(int descriptor, bool writes, char* memory, int64_t offset, int64_t bytes) const;

  const std::string directory_;
  const DiskFault& fault_;
  int buffered_ = -1, direct_ = -1;
  std::map<int64_t, Borrowed> borrowed_;  // by offset; they do not overlap
  int64_t unit_ = kPageBytes;             // what the addresses of direct transfers are multiples of
};

std::string default_disk_directory();  // $TMPDIR, or /tmp

// How a disk tier in this directory would move its bytes, found out by trying: past the page cache, through it, or
// not at all. kMemory: the file system lies in memory (tmpfs, ramfs), and what is sent there frees none.
enum class DiskAccess { kNone, kBuffered, kDirect, kMemory };
DiskAccess disk_access(const std::string& directory);

}  // namespace cairn::device::host
