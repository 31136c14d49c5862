#include "runtime/base/os/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <system_error>

#include "runtime/base/error.h"

namespace cairn {
namespace fs = std::filesystem;
namespace {

// Calls again while it is interrupted.
template <class Call>
auto retried(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// A write beyond the limit on file sizes (RLIMIT_FSIZE) raises SIGXFSZ in this thread, which ends the process
// by default. Blocked here, so that only EFBIG is left of it; a signal of our making is taken back.
class FileSizeSignal {
 public:
  FileSizeSignal() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGXFSZ);
    sigset_t pending;
    ::sigemptyset(&pending);
    ::sigpending(&pending);
    pending_ = ::sigismember(&pending, SIGXFSZ) == 1;
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~FileSizeSignal() {
    const int error = errno;
    const timespec now{};
    if (!pending_)
      while (::sigtimedwait(&set_, nullptr, &now) < 0 && errno == EINTR) {
      }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  FileSizeSignal(const FileSizeSignal&) = delete;
  FileSizeSignal& operator=(const FileSizeSignal&) = delete;

 private:
  sigset_t set_, before_;
  bool pending_ = false;
};

}  // namespace

Descriptor::~Descriptor() {
  const int error = errno;
  if (fd_ >= 0) ::close(fd_);
  errno = error;
}

std::string last_error() { return std::generic_category().message(errno); }

Descriptor open_at(int directory, const std::string& name, int flags) {
  return Descriptor(
      retried([&] { return ::openat(directory, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0666); }));
}

Descriptor open_directory_at(int directory, const std::string& name) {
  return open_at(directory, name, O_RDONLY | O_DIRECTORY);
}

Descriptor open_directory(const fs::path& path) {
  const char* const name = path.empty() ? "." : path.c_str();
  Descriptor directory(retried([&] { return ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  require(directory.open(), code_of_errno(errno), "cannot open directory '", path.string(),
          "': ", last_error());
  return directory;
}

bool look_at(int directory, const std::string& name, struct stat& info) {
  return ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

bool names_file(int directory, const std::string& name, int fd) {
  struct stat opened, named;
  return ::fstat(fd, &opened) == 0 && look_at(directory, name, named) && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

std::vector<std::string> entries_of(int directory, const fs::path& path) {
  const auto check = [&](bool ok) {
    const int number = errno;  // the C library asks for memory to list a directory
    if (!ok)
      fail(code_of_errno(number), "cannot read directory '", path.string(),
           "': ", std::generic_category().message(number));
  };
  // Opened again: a stream moves the position of the descriptor that it is made of.
  int fd = retried([&] { return ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  check(fd >= 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), ::closedir);
  if (stream == nullptr) {
    Descriptor closed(fd);
    check(false);
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  check(errno == 0);
  std::sort(names.begin(), names.end());
  return names;
}

// Words, and memory for them, are for failures alone: these are called where nothing may be refused any more.
void write_all(int fd, const std::string& path, uint64_t offset, const void* data, uint64_t bytes) {
  const FileSizeSignal blocked;
  const auto* from = static_cast<const char*>(data);
  for (uint64_t done = 0; done < bytes;) {
    const size_t piece = std::min<uint64_t>(bytes - done, uint64_t{1} << 30);
    const ssize_t n =
        retried([&] { return ::pwrite(fd, from + done, piece, static_cast<off_t>(offset + done)); });
    if (n == 0) errno = ENOSPC;
    if (n <= 0)
      fail(Code::kIo, "cannot write ", bytes - done, " bytes at ", offset + done, " of '", path,
           "': ", last_error());
    done += static_cast<uint64_t>(n);
  }
}

void read_all(int fd, const std::string& path, uint64_t offset, void* to, uint64_t bytes) {
  auto* out = static_cast<char*>(to);
  for (uint64_t done = 0; done < bytes;) {
    const size_t piece = std::min<uint64_t>(bytes - done, uint64_t{1} << 30);
    const ssize_t n =
        retried([&] { return ::pread(fd, out + done, piece, static_cast<off_t>(offset + done)); });
    if (n < 0)
      fail(Code::kIo, "cannot read ", bytes - done, " bytes at ", offset + done, " of '", path,
           "': ", last_error());
    require(n > 0, Code::kIo, "'", path, "' was cut short while it was in use: it ends at ", offset + done,
            ", ", bytes - done, " bytes before what is read; restore the file and open it again");
    done += static_cast<uint64_t>(n);
  }
}

void sync_fd(int fd, const std::string& path) {
  if (retried([&] { return ::fsync(fd); }) != 0)
    fail(Code::kIo, "cannot flush '", path, "' to the disk: ", last_error());
}

void sync_directory(int fd, const fs::path& path) {
  // EINVAL: a file system without directory sync, which orders renames itself.
  if (retried([&] { return ::fsync(fd); }) != 0 && errno != EINVAL)
    fail(Code::kIo, "cannot flush directory '", path.string(), "' to the disk: ", last_error());
}

}  // namespace cairn
