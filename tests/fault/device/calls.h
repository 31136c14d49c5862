// The calls by which a device takes threads, memory and files. In the program that includes this (one source
// file of it) each is replaced by one that may fail.
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>

namespace cairn::test {

// Ways in which calls fail. kLost: the disk takes and gives nothing. kShort, kInterrupted: what must be gone
// on with.
enum class Way { kRefused, kLost, kShort, kInterrupted };

struct Calls {
  std::atomic<bool> armed{false};
  std::atomic<bool> cannot_reserve{false};  // a file system that knows no fallocate
  std::atomic<long> made{0}, failed{0};
  long fail_at = -1;      // this call fails
  bool for_good = false;  // and all after it
  Way way = Way::kRefused;

  // Whether this call is to fail. Only transfers can be short, interrupted, or lost.
  bool fails(bool transfer) {
    if (!armed.load() || (way != Way::kRefused && !transfer)) return false;
    const long call = made.fetch_add(1);
    if (fail_at < 0 || (for_good ? call < fail_at : call != fail_at)) return false;
    failed.fetch_add(1);
    return true;
  }
};
inline Calls calls;

// Calls of this program fail as said while it lives.
struct Failing {
  Failing(long at, Way way, bool for_good) {
    calls.made = calls.failed = 0;
    calls.fail_at = at;
    calls.way = way;
    calls.for_good = for_good;
    calls.armed = true;
  }
  ~Failing() { calls.armed = false; }
};

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

inline int refuse(int error) {
  errno = error;
  return -1;
}

// A transfer of the disk tier: -1, or how many of the bytes to ask the system for.
inline ssize_t cut(size_t bytes) {
  if (!calls.fails(true)) return static_cast<ssize_t>(bytes);
  switch (calls.way) {
    case Way::kRefused:
    case Way::kLost:
      return refuse(EIO);
    case Way::kInterrupted:
      return refuse(EINTR);
    case Way::kShort:
      return static_cast<ssize_t>(bytes > 1 ? bytes / 2 : bytes);
  }
  return -1;
}

}  // namespace cairn::test

#define CAIRN_REPLACED extern "C" __attribute__((visibility("default")))

CAIRN_REPLACED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                                  void* argument) noexcept {
  using namespace cairn::test;
  if (calls.fails(false)) return EAGAIN;
  return real<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create")(
      thread, attributes, run, argument);
}
CAIRN_REPLACED void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  using namespace cairn::test;
  if (calls.fails(false)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return real<void* (*)(void*, size_t, int, int, int, off_t)>("mmap")(at, bytes, protection, flags, fd,
                                                                      offset);
}
CAIRN_REPLACED int mlock(const void* at, size_t bytes) noexcept {
  using namespace cairn::test;
  return calls.fails(false) ? refuse(ENOMEM) : real<int (*)(const void*, size_t)>("mlock")(at, bytes);
}
CAIRN_REPLACED int madvise(void* at, size_t bytes, int advice) noexcept {
  using namespace cairn::test;
  return calls.fails(false) ? refuse(ENOMEM)
                            : real<int (*)(void*, size_t, int)>("madvise")(at, bytes, advice);
}
CAIRN_REPLACED int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  using namespace cairn::test;
  if (calls.cannot_reserve.load()) return refuse(EOPNOTSUPP);
  return calls.fails(false) ? refuse(ENOSPC)
                            : real<int (*)(int, int, off_t, off_t)>("fallocate")(fd, mode, offset, bytes);
}
CAIRN_REPLACED int open(const char* path, int flags, ...) {
  using namespace cairn::test;
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return calls.fails(false) ? refuse(EMFILE)
                            : real<int (*)(const char*, int, mode_t)>("open")(path, flags, mode);
}
CAIRN_REPLACED int mkostemp(char* path, int flags) {
  using namespace cairn::test;
  return calls.fails(false) ? refuse(EMFILE) : real<int (*)(char*, int)>("mkostemp")(path, flags);
}
CAIRN_REPLACED ssize_t pread(int fd, void* to, size_t bytes, off_t offset) {
  const ssize_t part = cairn::test::cut(bytes);
  if (part < 0) return -1;
  return cairn::test::real<ssize_t (*)(int, void*, size_t, off_t)>("pread")(fd, to, static_cast<size_t>(part),
                                                                            offset);
}
CAIRN_REPLACED ssize_t pwrite(int fd, const void* from, size_t bytes, off_t offset) {
  const ssize_t part = cairn::test::cut(bytes);
  if (part < 0) return -1;
  return cairn::test::real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(
      fd, from, static_cast<size_t>(part), offset);
}
