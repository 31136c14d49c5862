// The threads that share the loops of a compute lane. They are made once, through calls whose failure is an
// error; running a loop allocates nothing and cannot fail.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/base/os/thread.h"

namespace cairn {

// A loop's shares are numbered from 0 and say themselves what they do; who runs which does not matter. Worker
// w takes share w unless the caller, done with its own, came first: a loop never waits for a worker that the
// system has not given a processor.
class ThreadTeam {
 public:
  using Share = void (*)(const void* loop, int share);

  // For loops of `threads` shares, with `workers` threads besides the caller's (-1: threads - 1).
  // kOutOfMemory: the system did not give that many; the message says how many it gave.
  explicit ThreadTeam(int threads, int workers = -1);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Calls run(loop, s) for every s < shares and returns when all have returned. Callable from several
  // threads: they take turns.
  void run(Share run, const void* loop, int shares) noexcept;

 private:
  // What a worker waits for. Its share is there to be taken while the state is kReady, by exchanging that for
  // kNone; only who took it reads loop_, which the caller keeps as it is until all shares are done.
  enum State : uint32_t { kNone, kReady, kAsleep };
  struct alignas(64) Worker {
    ThreadTeam* team = nullptr;
    int number = 0;
    std::atomic<uint32_t> state{kNone};
    Thread thread;
    void work();
  };
  struct Turns {  // first come, first served: a lane that comes back at once does not pass one that waits
    std::atomic<uint32_t> next{0}, serving{0};
    void take(int64_t looks);
    void pass();
  };
  static bool claim(std::atomic<uint32_t>& state);
  void finish();
  void end();

  const int threads_, workers_;
  const int64_t looks_;  // for work before sleeping
  const std::unique_ptr<Worker[]> team_;
  Turns turns_;
  Share share_ = nullptr;  // of the loop that runs
  const void* loop_ = nullptr;
  std::atomic<bool> ending_{false};
  alignas(64) std::atomic<uint32_t> pending_{0};  // shares not done yet, and a bit for a caller that sleeps
};

// Sets the team that helps this thread with the shares of its loops. nullptr, the default: the thread runs
// all of them, one after the other.
void set_thread_team(ThreadTeam* team);

}  // namespace cairn
