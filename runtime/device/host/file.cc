#include "runtime/device/host/file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "runtime/base/checked.h"

namespace cairn::device::host {
namespace {

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

std::string free_space(const std::string& directory) {
  struct statvfs space = {};
  if (statvfs(directory.c_str(), &space) != 0) return {};
  return cat("; ", static_cast<uint64_t>(space.f_bavail) * space.f_frsize, " bytes are free there");
}

}  // namespace

DiskFile::DiskFile(const State& state, int64_t bytes) : state_(state) {
  const std::string& directory = state.info.disk_directory;
  std::tie(buffered_, direct_) = open_unnamed(directory, bytes);
  int error;
  do error = posix_fallocate(buffered_, 0, bytes);
  while (error == EINTR);
  if (error == 0) return;
  close(buffered_);
  if (direct_ >= 0) close(direct_);
  io_error(bytes, cat("disk tier: cannot reserve ", bytes, " bytes in '", directory, "': ", reason(error),
                      free_space(directory)));
}

DiskFile::~DiskFile() {
  close(buffered_);
  if (direct_ >= 0) close(direct_);
}

void DiskFile::transfer(bool writes, char* memory, int64_t offset, int64_t bytes) const {
  const int64_t end = offset + bytes;
  const int64_t first = align_up(offset, kPageBytes), last = end & ~(kPageBytes - 1);
  const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory) % kPageBytes);
  if (direct_ < 0 || first >= last || at != offset % kPageBytes)
    return pages(buffered_, writes, memory, offset, bytes);
  if (first > offset) pages(buffered_, writes, memory, offset, first - offset);
  pages(direct_, writes, memory + (first - offset), first, last - first);
  if (end > last) pages(buffered_, writes, memory + (last - offset), last, end - last);
}

// Short transfers go on where they stopped. A file system that takes the flag but not the transfer (EINVAL),
// and what is left of a page, go through the cache.
void DiskFile::pages(int descriptor, bool writes, char* memory, int64_t offset, int64_t bytes) const {
  for (int64_t done = 0; done < bytes;) {
    int64_t part = bytes - done;
    if (state_.disk_fault) part = state_.disk_fault(writes, offset + done, part);
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
      io_error(bytes, cat("disk tier in '", state_.info.disk_directory,
                          "': ", writes ? "writing " : "reading ", bytes, " bytes at ", offset, ": ",
                          n < 0    ? reason(errno)
                          : writes ? "nothing was written"
                                   : "the file ends early"));
    done += n;
    if (n % kPageBytes != 0) descriptor = buffered_;
  }
}

}  // namespace cairn::device::host
