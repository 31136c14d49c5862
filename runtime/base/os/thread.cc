#include "runtime/base/os/thread.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/os/float_environment.h"

namespace cairn {
namespace {

constexpr int kMaxHelpers = 63;

// The signals that cairn's threads block, so that the host's threads get them. Signals that a fault of this thread raises are
// not blocked: blocked, they would end the process without calling its handler.
sigset_t hosts_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&set, own);
  return set;
}

}  // namespace

const char* no_thread_remedy() {
  return "ask for fewer threads, or raise the limit on processes (RLIMIT_NPROC, the container's pids.max) or "
         "on memory";
}

int Thread::try_start(const char* name, Main main, void* argument) {
  main_ = main;
  argument_ = argument;
  std::strncpy(name_, name, sizeof name_ - 1);
  // The new thread inherits the mask, so that there is no moment in which it takes a signal.
  const sigset_t blocked = hosts_signals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const int error = pthread_create(&thread_, nullptr, enter, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return error;
  process_ = getpid();
  // The thread also names itself: that needs no /proc, but may happen later.
  pthread_setname_np(thread_, name_);
  return 0;
}

void Thread::start(const char* name, Main main, void* argument) {
  const int error = try_start(name, main, argument);
  require(error == 0, Code::kOutOfMemory, "cannot start the thread '", name,
          "': ", std::generic_category().message(error), "; ", no_thread_remedy());
}

void Thread::join() {
  if (process_ == 0) return;
  if (process_ == getpid()) pthread_join(thread_, nullptr);
  process_ = 0;
}

void* Thread::enter(void* self) {
  const auto& thread = *static_cast<const Thread*>(self);
  prctl(PR_SET_NAME, thread.name_, 0, 0, 0);
  FloatRegisters::defaults().write();
  thread.main_(thread.argument_);
  return nullptr;
}

int usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

void detail::spread(const char* name, int64_t count, int threads, void (*call)(const void*, int64_t),
                    const void* work) {
  struct Round {
    const int64_t count;
    void (*const call)(const void*, int64_t);
    const void* const work;
    std::atomic<int64_t> next{0};
    void run() {
      for (int64_t i = next++; i < count; i = next++) call(work, i);
    }
  } round{count, call, work};
  std::array<Thread, kMaxHelpers> helpers;  // joined on the way out
  const int64_t wanted = std::min<int64_t>({count, threads, kMaxHelpers + 1}) - 1;
  for (int64_t h = 0; h < wanted; ++h)
    if (helpers[static_cast<size_t>(h)].try_start(
            name, [](void* r) { static_cast<Round*>(r)->run(); }, &round) != 0)
      break;
  round.run();
}

}  // namespace cairn
