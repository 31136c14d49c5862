#include "tests/fault/calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdarg>

namespace cairn::test {
namespace {

thread_local Calls calls;
thread_local bool armed = false;
thread_local long made = 0;

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// What is to happen to a call.
struct Fate {
  bool fails = false;
  size_t longest = ~size_t{0};
};

Fate fate(bool interruptible = false) {
  Fate f;
  if (!armed) return f;
  f.longest = calls.longest;
  const long number = made++;
  const bool meant = calls.at >= 0 && (number == calls.at || (calls.from_there_on && number > calls.at));
  if (meant && calls.kill) ::raise(SIGKILL);
  if (meant && calls.cut) {
    f.longest = 0;  // half
  } else if (meant) {
    f.fails = true;
    errno = calls.error;
  } else if (calls.interrupt && interruptible && number % 2 == 0) {
    f.fails = true;
    errno = EINTR;
  }
  return f;
}

size_t cut(const Fate& f, size_t bytes) {
  return f.longest == 0 ? std::max<size_t>(bytes / 2, 1) : std::min(bytes, f.longest);
}

bool recording() { return armed && calls.recorder != nullptr; }

ino_t inode(int fd) {
  struct stat info;
  return real<int(int, struct stat*)>("fstat")(fd, &info) == 0 ? info.st_ino : 0;
}
ino_t inode(int directory, const char* name) {
  struct stat info;
  return real<int(int, const char*, struct stat*, int)>("fstatat")(directory, name, &info,
                                                                   AT_SYMLINK_NOFOLLOW) == 0
             ? info.st_ino
             : 0;
}

// Where a path leads: the folder's inode and the name in it.
struct Where {
  ino_t directory;
  std::string name;
};
Where where(int directory, const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos)
    return {inode(AT_FDCWD, path.substr(0, slash).c_str()), path.substr(slash + 1)};
  return {directory == AT_FDCWD ? inode(AT_FDCWD, ".") : inode(directory), path};
}

void made_entry(Effect::Kind kind, int directory, const char* path) {
  const int error = errno;
  const Where at = where(directory, path);
  calls.recorder->add({kind, at.directory, 0, at.name, {}, inode(directory, path), 0, {}});
  errno = error;
}

void lost_entry(int directory, const char* path) {
  const Where at = where(directory, path);
  calls.recorder->add({Effect::kUnlink, at.directory, 0, at.name, {}, 0, 0, {}});
}

int moved(int result, int from_directory, const char* from, int to_directory, const char* to,
          bool exchanged) {
  if (result != 0 || !recording()) return result;
  const Where a = where(from_directory, from), b = where(to_directory, to);
  calls.recorder->add(
      {exchanged ? Effect::kExchange : Effect::kRename, a.directory, b.directory, a.name, b.name, 0, 0, {}});
  return result;
}

int opened(const char* name, int directory, const char* path, int flags, mode_t mode) {
  if (fate(true).fails) return -1;
  const bool fresh = recording() && (flags & O_CREAT) != 0 && inode(directory, path) == 0;
  const int fd = directory == AT_FDCWD
                     ? real<int(const char*, int, mode_t)>(name)(path, flags, mode)
                     : real<int(int, const char*, int, mode_t)>(name)(directory, path, flags, mode);
  if (fd >= 0 && fresh) made_entry(Effect::kCreate, directory, path);
  return fd;
}

ssize_t written(const char* name, int fd, const void* data, size_t bytes, off_t offset) {
  const Fate f = fate(true);
  if (f.fails) return -1;
  const ssize_t n = real<ssize_t(int, const void*, size_t, off_t)>(name)(fd, data, cut(f, bytes), offset);
  if (n > 0 && recording())
    calls.recorder->add({Effect::kWrite,
                         0,
                         0,
                         {},
                         {},
                         inode(fd),
                         static_cast<uint64_t>(offset),
                         std::string(static_cast<const char*>(data), static_cast<size_t>(n))});
  return n;
}

int flushed(const char* name, int fd) {
  if (fate(true).fails) return -1;
  if (!armed) return real<int(int)>(name)(fd);
  if (recording()) calls.recorder->add({Effect::kSync, 0, 0, {}, {}, inode(fd), 0, {}});
  return 0;
}

int truncated(const char* name, int fd, off_t size) {
  if (fate(true).fails) return -1;
  const int result = real<int(int, off_t)>(name)(fd, size);
  if (result == 0 && recording())
    calls.recorder->add({Effect::kTruncate, 0, 0, {}, {}, inode(fd), static_cast<uint64_t>(size), {}});
  return result;
}

}  // namespace

Under::Under(const Calls& with) : before_(calls), was_armed_(armed) {
  calls = with;
  test::made = 0;
  armed = true;
}
Under::~Under() {
  calls = before_;
  armed = was_armed_;
}
long Under::made() { return test::made; }

}  // namespace cairn::test

using namespace cairn::test;

#define REPLACED extern "C" __attribute__((visibility("default")))

REPLACED int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return opened("open", AT_FDCWD, path, flags, mode);
}
REPLACED int openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return opened(directory == AT_FDCWD ? "open" : "openat", directory, path, flags, mode);
}
REPLACED int close(int fd) {
  const bool fails = fate(true).fails;
  const int error = errno, result = real<int(int)>("close")(fd);  // it is closed, whatever it says
  if (!fails) return result;
  errno = error;
  return -1;
}
REPLACED ssize_t pread(int fd, void* to, size_t bytes, off_t offset) {
  const Fate f = fate(true);
  return f.fails ? -1 : real<ssize_t(int, void*, size_t, off_t)>("pread")(fd, to, cut(f, bytes), offset);
}
REPLACED ssize_t pread64(int fd, void* to, size_t bytes, off64_t offset) {
  const Fate f = fate(true);
  return f.fails ? -1 : real<ssize_t(int, void*, size_t, off64_t)>("pread64")(fd, to, cut(f, bytes), offset);
}
REPLACED ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return written("pwrite", fd, data, bytes, offset);
}
REPLACED ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t offset) {
  return written("pwrite64", fd, data, bytes, offset);
}
REPLACED int fsync(int fd) { return flushed("fsync", fd); }
REPLACED int fdatasync(int fd) { return flushed("fdatasync", fd); }
REPLACED int ftruncate(int fd, off_t size) noexcept { return truncated("ftruncate", fd, size); }
REPLACED int ftruncate64(int fd, off64_t size) noexcept { return truncated("ftruncate64", fd, size); }
REPLACED int fstat(int fd, struct stat* info) noexcept {
  return fate().fails ? -1 : real<int(int, struct stat*)>("fstat")(fd, info);
}
REPLACED int stat(const char* path, struct stat* info) noexcept {
  return fate().fails ? -1 : real<int(const char*, struct stat*)>("stat")(path, info);
}
REPLACED int lstat(const char* path, struct stat* info) noexcept {
  return fate().fails ? -1 : real<int(const char*, struct stat*)>("lstat")(path, info);
}
REPLACED int fstatat(int directory, const char* path, struct stat* info, int flags) noexcept {
  return fate().fails
             ? -1
             : real<int(int, const char*, struct stat*, int)>("fstatat")(directory, path, info, flags);
}
REPLACED int mkdir(const char* path, mode_t mode) noexcept {
  const int result = fate().fails ? -1 : real<int(const char*, mode_t)>("mkdir")(path, mode);
  if (result == 0 && recording()) made_entry(Effect::kMakeDirectory, AT_FDCWD, path);
  return result;
}
REPLACED int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  const int result =
      fate().fails ? -1 : real<int(int, const char*, mode_t)>("mkdirat")(directory, path, mode);
  if (result == 0 && recording()) made_entry(Effect::kMakeDirectory, directory, path);
  return result;
}
REPLACED int linkat(int from_directory, const char* from, int to_directory, const char* to,
                    int flags) noexcept {
  const int result = fate().fails ? -1
                                  : real<int(int, const char*, int, const char*, int)>("linkat")(
                                        from_directory, from, to_directory, to, flags);
  if (result == 0 && recording()) made_entry(Effect::kLink, to_directory, to);
  return result;
}
REPLACED int rename(const char* from, const char* to) noexcept {
  const int result = fate().fails ? -1 : real<int(const char*, const char*)>("rename")(from, to);
  return moved(result, AT_FDCWD, from, AT_FDCWD, to, false);
}
REPLACED int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  const int result = fate().fails ? -1
                                  : real<int(int, const char*, int, const char*)>("renameat")(
                                        from_directory, from, to_directory, to);
  return moved(result, from_directory, from, to_directory, to, false);
}
REPLACED int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                       unsigned flags) noexcept {
  const int result = fate().fails ? -1
                                  : real<int(int, const char*, int, const char*, unsigned)>("renameat2")(
                                        from_directory, from, to_directory, to, flags);
  return moved(result, from_directory, from, to_directory, to, (flags & RENAME_EXCHANGE) != 0);
}
REPLACED int unlinkat(int directory, const char* path, int flags) noexcept {
  const int result = fate().fails ? -1 : real<int(int, const char*, int)>("unlinkat")(directory, path, flags);
  if (result == 0 && recording()) lost_entry(directory, path);
  return result;
}
REPLACED int rmdir(const char* path) noexcept {
  const int result = fate().fails ? -1 : real<int(const char*)>("rmdir")(path);
  if (result == 0 && recording()) lost_entry(AT_FDCWD, path);
  return result;
}
REPLACED int flock(int fd, int operation) noexcept {
  return fate().fails ? -1 : real<int(int, int)>("flock")(fd, operation);
}
REPLACED DIR* fdopendir(int fd) { return fate().fails ? nullptr : real<DIR*(int)>("fdopendir")(fd); }
REPLACED struct dirent* readdir(DIR* directory) {
  return fate().fails ? nullptr : real<struct dirent*(DIR*)>("readdir")(directory);
}
REPLACED int statvfs(const char* path, struct statvfs* info) noexcept {
  return fate().fails ? -1 : real<int(const char*, struct statvfs*)>("statvfs")(path, info);
}
REPLACED char* realpath(const char* path, char* to) noexcept {
  return fate().fails ? nullptr : real<char*(const char*, char*)>("realpath")(path, to);
}
