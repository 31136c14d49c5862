// Points in queues. Every queue has a timeline: the number of pieces of work it has done. An event is no
// object of its own on the lanes: recording it notes (timeline, number submitted so far), waiting for it
// waits for that number.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>

#include "runtime/device/device.h"

namespace cairn::device::cpu {

// Advanced by one thread, waited for by any. Waiting sleeps: with as many compute threads as processors, a
// lane that spins would take time from the kernels it waits for.
class Timeline {
 public:
  void advance(uint64_t done) {
    // Both sides store, then load the other's word, all sequentially consistent: one of them sees the other.
    done_.store(done);
    if (wake_at_.load() <= done) [[unlikely]]
      wake();
  }
  bool reached(uint64_t point) const { return done_.load() >= point; }
  void wait(uint64_t point) {
    if (reached(point)) return;
    std::unique_lock lock(mutex_);
    for (;;) {
      if (point < wake_at_.load()) wake_at_.store(point);
      if (reached(point)) return;
      woken_.wait(lock);
    }
  }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  void wake() {
    std::lock_guard lock(mutex_);
    wake_at_.store(kNever);  // those who wait for later points register again
    woken_.notify_all();
  }

  std::atomic<uint64_t> done_{0}, wake_at_{kNever};
  std::mutex mutex_;
  std::condition_variable woken_;
};

// A point of a timeline; none: never recorded.
struct Mark {
  std::shared_ptr<Timeline> timeline;
  uint64_t point = 0;
};

class CpuEvent : public Event {
 public:
  void set(Mark mark) {
    std::lock_guard lock(mutex_);
    mark_ = std::move(mark);
  }
  Mark mark() const {
    std::lock_guard lock(mutex_);
    return mark_;
  }

 private:
  mutable std::mutex mutex_;
  Mark mark_;
};

}  // namespace cairn::device::cpu
