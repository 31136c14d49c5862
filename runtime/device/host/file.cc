#include "runtime/device/host/file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "runtime/base/checked.h"

namespace cairn::device::host {
namespace {

constexpr int64_t kCopied = int64_t{1} << 20;  // bytes at once

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void io_error(int64_t bytes, std::string message) {
  MemoryFault fault;
  fault.requested_bytes = static_cast<uint64_t>(bytes);
  fault.tier = Tier::kDisk;
  throw Error(Code::kIo, std::move(message), fault);
}

// A descriptor, and a second one past the page cache or -1.
std::pair<int, int> open_unnamed(const std::string& directory, int64_t bytes) {
  const int file = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) {
    const std::string self = cat("/proc/self/fd/", file);
    return {file, ::open(self.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT)};
  }
  std::string path = directory + "/cairn-tier-XXXXXX";  // file systems without O_TMPFILE
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named < 0)
    io_error(bytes,
             cat("disk tier: cannot make a file of ", bytes, " bytes in '", directory, "': ", reason(errno)));
  const int direct = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT);
  unlink(path.c_str());
  return {named, direct};
}

// -1: nobody knows.
int64_t free_bytes(const std::string& directory) {
  struct statvfs space = {};
  if (statvfs(directory.c_str(), &space) != 0) return -1;
  return static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
}

// Whether the file lies on a file system that keeps its bytes in memory.
bool in_memory(int file) {
  constexpr unsigned kTmpfs = 0x01021994, kRamfs = 0x858458f6;
  struct statfs about = {};
  if (fstatfs(file, &about) != 0) return false;
  const auto kind = static_cast<unsigned>(about.f_type);
  return kind == kTmpfs || kind == kRamfs;
}

// What the addresses of direct transfers must be multiples of, as the kernel says (Linux 6.1), else a page. The
// structure is the kernel's own: the C library's lacks the fields for long.
int64_t direct_unit(int file) {
  constexpr uint32_t kDirectAlignment = 0x2000;      // STATX_DIOALIGN
  constexpr size_t kMemoryUnit = 0x98, kSize = 256;  // of struct statx
  alignas(8) std::array<unsigned char, kSize> found = {};
  if (syscall(SYS_statx, file, "", AT_EMPTY_PATH, kDirectAlignment, found.data()) != 0) return kPageBytes;
  uint32_t mask = 0, unit = 0;
  std::memcpy(&mask, found.data(), sizeof mask);
  std::memcpy(&unit, found.data() + kMemoryUnit, sizeof unit);
  const bool known = (mask & kDirectAlignment) != 0 && unit > 0 && kPageBytes % unit == 0;
  // Never less than a cache line, which is what memory transfers at a time.
  return known ? std::max<int64_t>(unit, kAlignment) : kPageBytes;
}

}  // namespace

std::string default_disk_directory() {
  const char* const temporary = std::getenv("TMPDIR");
  return temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
}

DiskAccess disk_access(const std::string& directory) {
  int buffered = -1, direct = -1;
  try {
    std::tie(buffered, direct) = open_unnamed(directory, kPageBytes);
  } catch (const Error&) {
    return DiskAccess::kNone;
  }
  alignas(kPageBytes) static constexpr std::array<char, kPageBytes> kPage = {};
  const auto takes = [&](int file) {
    return file >= 0 && pwrite(file, kPage.data(), kPageBytes, 0) == kPageBytes;
  };
  const bool direct_works = takes(direct), works = direct_works || takes(buffered);
  const DiskAccess access = !works                ? DiskAccess::kNone
                            : in_memory(buffered) ? DiskAccess::kMemory
                            : direct_works        ? DiskAccess::kDirect
                                                  : DiskAccess::kBuffered;
  close(buffered);
  if (direct >= 0) close(direct);
  return access;
}

DiskFile::DiskFile(std::string directory, int64_t bytes, const DiskFault& fault)
    : directory_(std::move(directory)), fault_(fault) {
  std::tie(buffered_, direct_) = open_unnamed(directory_, bytes);
  try {
    reserve(bytes);
  } catch (...) {
    close(buffered_);
    if (direct_ >= 0) close(direct_);
    throw;
  }
  if (direct_ >= 0) unit_ = direct_unit(direct_);
}

// Not posix_fallocate: where a file system cannot reserve, the C library writes into every block, which takes
// minutes for a large tier. There the file grows as it is written, and what is free now is all that can be said.
void DiskFile::reserve(int64_t bytes) const {
  int error = 0;
  do error = fallocate(buffered_, 0, 0, bytes) == 0 ? 0 : errno;
  while (error == EINTR);
  const int64_t free = free_bytes(directory_);
  if (error == EOPNOTSUPP || error == ENOSYS) {
    error = free >= 0 && free < bytes ? ENOSPC : ftruncate(buffered_, bytes) == 0 ? 0 : errno;
  }
  if (error == 0) return;
  io_error(bytes, cat("disk tier: cannot reserve ", bytes, " bytes in '", directory_, "': ", reason(error),
                      free < 0 ? "" : cat("; ", free, " bytes are free there"),
                      "; free some, or name another directory (TMPDIR, or the device's disk_directory)"));
}

DiskFile::~DiskFile() {
  close(buffered_);
  if (direct_ >= 0) close(direct_);
}

void DiskFile::borrow(int64_t offset, int64_t bytes, std::shared_ptr<const InputFile> file, uint64_t at) {
  own(offset, bytes);
  borrowed_[offset] = {bytes, std::move(file), at};
  const int64_t first = align_up(offset, kPageBytes), last = (offset + bytes) & ~(kPageBytes - 1);
  if (first < last)  // where the file system cannot, the room is kept in vain
    (void)fallocate(buffered_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first, last - first);
}

void DiskFile::own(int64_t offset, int64_t bytes) {
  auto next = borrowed_.lower_bound(offset + bytes);
  while (next != borrowed_.begin()) {
    const auto at = std::prev(next);
    const int64_t begin = at->first, end = begin + at->second.bytes;
    if (end <= offset) return;
    const Borrowed was = std::move(at->second);
    next = borrowed_.erase(at);
    const auto copy = [&](int64_t from, int64_t to) {
      std::vector<char> piece(static_cast<size_t>(std::min(kCopied, std::max<int64_t>(to - from, 0))));
      for (int64_t n = 0; from < to; from += n) {
        n = std::min(kCopied, to - from);
        was.file->read(was.at + static_cast<uint64_t>(from - begin), piece.data(), static_cast<uint64_t>(n));
        was.file->require_unchanged();
        transfer_own(true, piece.data(), from, n);
      }
    };
    copy(begin, std::min(end, offset));
    copy(std::max(begin, offset + bytes), end);
  }
}

void DiskFile::transfer(bool writes, char* memory, int64_t offset, int64_t bytes) const {
  for (int64_t here = 0; bytes > 0; memory += here, offset += here, bytes -= here) {
    const auto next = borrowed_.upper_bound(offset);
    here = next == borrowed_.end() ? bytes : std::min(bytes, next->first - offset);
    const auto before = next == borrowed_.begin() ? borrowed_.end() : std::prev(next);
    const int64_t left = before == borrowed_.end() ? 0 : before->first + before->second.bytes - offset;
    if (left <= 0) {
      transfer_own(writes, memory, offset, here);
      continue;
    }
    here = std::min(here, left);
    const Borrowed& from = before->second;
    require(!writes, Code::kInternal, "disk tier: bytes of '", from.file->path().string(),
            "' are written to");
    try {
      from.file->read(from.at + static_cast<uint64_t>(offset - before->first), memory,
                      static_cast<uint64_t>(here));
      from.file->require_unchanged();
    } catch (const Error& error) {
      io_error(here, cat("disk tier: ", error.what()));
    }
  }
}

void DiskFile::transfer_own(bool writes, char* memory, int64_t offset, int64_t bytes) const {
  const int64_t end = offset + bytes;
  const int64_t first = align_up(offset, kPageBytes), last = end & ~(kPageBytes - 1);
  if (first >= last || !suits(memory, offset)) return pages(buffered_, writes, memory, offset, bytes);
  if (first > offset) pages(buffered_, writes, memory, offset, first - offset);
  pages(direct_, writes, memory + (first - offset), first, last - first);
  if (end > last) pages(buffered_, writes, memory + (last - offset), last, end - last);
}

// A short transfer is continued. Where the file system takes O_DIRECT but refuses the transfer (EINVAL), and for the rest
// of a page, the bytes go through the page cache.
void DiskFile::pages(int descriptor, bool writes, char* memory, int64_t offset, int64_t bytes) const {
  for (int64_t done = 0; done < bytes;) {
    int64_t part = bytes - done;
    if (fault_) part = fault_(writes, offset + done, part);
    if (part < 0) errno = static_cast<int>(-part);
    const auto size = static_cast<size_t>(std::max<int64_t>(part, 0));
    const ssize_t n = part < 0 ? -1
                      : writes ? pwrite(descriptor, memory + done, size, offset + done)
                               : pread(descriptor, memory + done, size, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL && descriptor != buffered_) {
      descriptor = buffered_;
      continue;
    }
    if (n <= 0)
      io_error(bytes, cat("disk tier in '", directory_, "': ", writes ? "writing " : "reading ", bytes,
                          " bytes at ", offset, ": ",
                          n < 0    ? reason(errno)
                          : writes ? "nothing was written"
                                   : "the file ends early"));
    done += n;
    if (n % kPageBytes != 0) descriptor = buffered_;
  }
}

}  // namespace cairn::device::host
