#include "runtime/base/temporary.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/listing.h"

namespace cairn {
namespace fs = std::filesystem;
namespace {

// Whether `path` still names the file behind `fd`: it may have been removed between open and lock.
bool same_file(int fd, const fs::path& path) {
  struct stat opened, named;
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

void make_directories(const fs::path& path) {
  std::error_code ignored;
  if (path.empty() || fs::is_directory(path, ignored)) return;
  make_directories(path.parent_path());
  if (::mkdir(path.c_str(), 0777) != 0)
    require(errno == EEXIST, Code::kIo, "cannot make directory '", path.string(), "': ", last_error());
  else
    sync_directory(path.parent_path());
}

// Failures do not matter here: what cannot be removed now is tried again by the next writer.
void remove_stale(const fs::path& parent, const std::string& prefix) {
  std::vector<std::string> names;
  try {
    names = names_in(parent);
  } catch (const Error& error) {
    if (error.code() == Code::kOutOfMemory) throw;
  }
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    const fs::path path = parent / name;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    std::error_code ignored;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && same_file(fd, path)) fs::remove_all(path, ignored);
    ::close(fd);
  }
}

int open_new(const fs::path& path, TemporaryKind kind) {
  if (kind == TemporaryKind::kFile) return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (::mkdir(path.c_str(), 0777) != 0) return -1;
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

}  // namespace

std::string last_error() { return std::generic_category().message(errno); }

fs::path resolve_target(const fs::path& path) {
  std::error_code failed;
  fs::path full = fs::weakly_canonical(fs::absolute(path, failed), failed);
  require(!failed, code_of_errno(failed.value()), "cannot resolve '", path.string(), "': ", failed.message());
  if (full.filename().empty()) full = full.parent_path();
  require(!full.filename().empty(), Code::kInvalidArgument, "'", path.string(), "' cannot be replaced");
  return full;
}

Temporary make_temporary(const fs::path& target, TemporaryKind kind) {
  const fs::path parent = target.parent_path();
  make_directories(parent);
  const std::string prefix = "." + target.filename().string() + ".tmp-";
  remove_stale(parent, prefix);
  const std::string stem = prefix + std::to_string(::getpid());
  for (int attempt = 0; attempt < 1000; ++attempt) {
    fs::path path = parent / (attempt ? stem + "." + std::to_string(attempt) : stem);
    const int fd = open_new(path, kind);
    if (fd < 0) {
      require(errno == EEXIST || errno == ENOENT, Code::kIo, "cannot make '", path.string(),
              "': ", last_error());
      continue;
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && same_file(fd, path)) return {std::move(path), fd};
    ::close(fd);  // another writer took it for a dead one's before the lock: the next name
  }
  fail(Code::kIo, "cannot make a temporary beside '", target.string(), "': every name is taken");
}

void write_all(int fd, const std::string& path, uint64_t offset, const void* data, uint64_t bytes) {
  const auto* from = static_cast<const char*>(data);
  for (uint64_t done = 0; done < bytes;) {
    const size_t piece = std::min<uint64_t>(bytes - done, uint64_t{1} << 30);
    const ssize_t n = ::pwrite(fd, from + done, piece, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    require(n > 0, Code::kIo, "cannot write ", bytes - done, " bytes at ", offset + done, " of '", path,
            "': ", last_error());
    done += static_cast<uint64_t>(n);
  }
}

void sync_fd(int fd, const std::string& path) {
  while (::fsync(fd) != 0) {
    if (errno == EINTR) continue;
    fail(Code::kIo, "cannot flush '", path, "' to the disk: ", last_error());
  }
}

void sync_directory(const fs::path& path) {
  const int fd = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  require(fd >= 0, Code::kIo, "cannot open directory '", path.string(), "': ", last_error());
  int result = ::fsync(fd);
  while (result != 0 && errno == EINTR) result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  errno = error;
  // EINVAL: a file system without directory sync, which orders renames itself.
  require(result == 0 || error == EINVAL, Code::kIo, "cannot flush directory '", path.string(),
          "' to the disk: ", last_error());
}

}  // namespace cairn
