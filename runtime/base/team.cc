#include "runtime/base/team.h"

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/base/relax.h"

namespace cairn {
namespace detail {
thread_local constinit int loop_threads = 1;
}
namespace {

thread_local constinit ThreadTeam* loop_team = nullptr;

// Kernels follow each other within microseconds, and waking a thread takes some 20: those who wait look this
// often first, some 50 to 200 microseconds. With more threads than processors somebody else needs the
// processor.
constexpr int64_t kLooks = 5000;
constexpr uint32_t kCallerSleeps = uint32_t{1} << 31;

// Whether `done` became true within so many looks.
template <class Done>
bool look_for(int64_t looks, const Done& done) {
  for (; looks > 0; --looks) {
    if (done()) return true;
    relax();
  }
  return done();
}

}  // namespace

ThreadTeam::ThreadTeam(int threads, int workers)
    : threads_(std::max(1, threads)),
      workers_(workers < 0 ? threads_ - 1 : std::min(workers, threads_ - 1)),
      looks_(threads_ <= usable_processors() ? kLooks : 0),
      team_(std::make_unique<Worker[]>(static_cast<size_t>(threads_))) {  // number 0 is the caller
  for (int w = 1; w <= workers_; ++w) {
    Worker& worker = team_[static_cast<size_t>(w)];
    worker.team = this;
    char name[24];  // the system takes 15 characters
    std::snprintf(name, sizeof name, "cairn/work-%d", w);
    const int error = worker.thread.try_start(
        name, [](void* self) { static_cast<Worker*>(self)->work(); }, &worker);
    if (error == 0) continue;
    end();
    fail(Code::kOutOfMemory, "cannot start ", threads_, " compute threads, only ", w, ": ",
         std::generic_category().message(error), "; ", no_thread_remedy());
  }
}

ThreadTeam::~ThreadTeam() { end(); }

void ThreadTeam::end() {
  ending_.store(true);
  for (int w = 1; w < threads_; ++w) {
    Worker& worker = team_[static_cast<size_t>(w)];
    if (!worker.thread.started()) continue;
    if (worker.state.exchange(kReady) == kAsleep) worker.state.notify_one();
    worker.thread.join();
  }
}

bool ThreadTeam::claim(std::atomic<uint32_t>& state) {
  uint32_t ready = kReady;
  return state.load(std::memory_order_relaxed) == kReady &&
         state.compare_exchange_strong(ready, kNone, std::memory_order_acq_rel);
}

void ThreadTeam::Worker::work() {
  for (;;) {
    if (look_for(team->looks_, [this] { return claim(state); })) {
      if (team->ending_.load()) return;
      team->share_(team->loop_, static_cast<int>(this - team->team_.get()));
      team->finish();
      continue;
    }
    uint32_t none = kNone;
    if (state.compare_exchange_strong(none, kAsleep, std::memory_order_acq_rel)) state.wait(kAsleep);
  }
}

void ThreadTeam::finish() {
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == (kCallerSleeps | 1)) pending_.notify_one();
}

void ThreadTeam::run(Share run, const void* loop, int shares) noexcept {
  turns_.take(looks_);
  share_ = run;
  loop_ = loop;
  const int given = std::min(shares - 1, workers_);  // the caller does the rest
  pending_.store(static_cast<uint32_t>(given), std::memory_order_relaxed);
  for (int w = 1; w <= given; ++w) {
    std::atomic<uint32_t>& state = team_[static_cast<size_t>(w)].state;
    if (state.exchange(kReady, std::memory_order_acq_rel) == kAsleep) state.notify_one();
  }
  run(loop, 0);
  for (int s = given + 1; s < shares; ++s) run(loop, s);
  for (int w = given; w >= 1; --w)
    if (claim(team_[static_cast<size_t>(w)].state)) {
      run(loop, w);
      pending_.fetch_sub(1, std::memory_order_relaxed);
    }
  const auto done = [this] { return pending_.load(std::memory_order_acquire) == 0; };
  if (!look_for(looks_, done)) {
    uint32_t left = pending_.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
    for (; left != kCallerSleeps; left = pending_.load(std::memory_order_acquire)) pending_.wait(left);
  }
  turns_.pass();
}

void ThreadTeam::Turns::take(int64_t looks) {
  const uint32_t mine = next.fetch_add(1);
  const auto come = [&] { return serving.load() == mine; };
  if (look_for(looks, come)) return;
  for (uint32_t now = serving.load(); now != mine; now = serving.load()) serving.wait(now);
}

void ThreadTeam::Turns::pass() {
  // Both sides store, then load the other's word, all sequentially consistent: one of them sees the other.
  const uint32_t following = serving.load(std::memory_order_relaxed) + 1;
  serving.store(following);
  if (next.load() != following) serving.notify_all();
}

void set_thread_team(ThreadTeam* team) { loop_team = team; }

void detail::run_shares(ThreadTeam::Share share, const void* loop, int shares) {
  const int before = std::exchange(loop_threads, 1);
  if (loop_team != nullptr) {
    loop_team->run(share, loop, shares);
  } else {
    for (int s = 0; s < shares; ++s) share(loop, s);
  }
  loop_threads = before;
}

}  // namespace cairn
