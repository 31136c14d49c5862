// A thread of the library's own: named, deaf to the host's signals, with the default floating-point environment
// whatever that of its maker, and started through a call whose failure
// is an error, not an exception of the standard library or the end of the process.
#pragma once
#include <pthread.h>
#include <sys/types.h>

#include <cstdint>

namespace cairn {

// It must not be moved while it runs. Ended by returning from its main function, which must not throw.
class Thread {
 public:
  using Main = void (*)(void* argument);

  Thread() = default;
  ~Thread() { join(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Runs main(argument) under `name`, of which the system keeps 15 characters. Returns 0, or the error
  // number.
  int try_start(const char* name, Main main, void* argument);
  // The same for a member function; kOutOfMemory with the cause and the remedy if there is no thread.
  template <auto kMember, class Object>
  void start(const char* name, Object* object) {
    start(
        name, [](void* self) { (static_cast<Object*>(self)->*kMember)(); }, object);
  }
  void start(const char* name, Main main, void* argument);
  bool started() const { return process_ != 0; }
  // Waits for its end. In a child process after fork() there is nobody to wait for: forgets it.
  void join();

 private:
  static void* enter(void* self);

  pthread_t thread_ = {};
  pid_t process_ = 0;  // that started it; 0: none did
  Main main_ = nullptr;
  void* argument_ = nullptr;
  char name_[16] = {};
};

// Why a thread could not be started, and what helps, as a part of a sentence.
const char* no_thread_remedy();

// Processors that this process may use, at least one.
int usable_processors();

namespace detail {
void spread(const char* name, int64_t count, int threads, void (*call)(const void*, int64_t),
            const void* work);
}

// Calls work(i) once for every i < count, on up to `threads` threads of which the caller is one. Threads that
// cannot be had are done without. Returns when all calls have; work must not throw.
template <class Work>
void spread(const char* name, int64_t count, int threads, const Work& work) {
  detail::spread(
      name, count, threads, [](const void* w, int64_t i) { (*static_cast<const Work*>(w))(i); }, &work);
}

}  // namespace cairn
