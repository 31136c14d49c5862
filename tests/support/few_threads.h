// A system that gives only so many more threads: pthread_create of the program that includes this is
// replaced. Include it in one source file of a test program that is linked with the library's objects.
#pragma once
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace cairn::test {

inline std::atomic<long> threads_left{-1};  // -1: as many as the system has
inline std::atomic<long> threads_asked{0};

// While it lives, only the first `allowed` calls succeed.
struct FewThreads {
  explicit FewThreads(long allowed) {
    threads_asked.store(0);
    threads_left.store(allowed);
  }
  ~FewThreads() { threads_left.store(-1); }
};

}  // namespace cairn::test

// A sanitizer that is linked into the program, as clang's are, finds out about threads here.
extern "C" __attribute__((weak)) int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*,
                                                                  void* (*)(void*), void*);

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*run)(void*),
                                                                     void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = __interceptor_pthread_create != nullptr
                                 ? __interceptor_pthread_create
                                 : reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  cairn::test::threads_asked.fetch_add(1);
  if (cairn::test::threads_left.load() >= 0 && cairn::test::threads_left.fetch_sub(1) <= 0) {
    cairn::test::threads_left.store(0);
    return EAGAIN;
  }
  return create(thread, attributes, run, argument);
}
