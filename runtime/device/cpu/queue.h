// One lane: a thread that does its work in order. Submitting takes a lock for a few instructions and never
// waits for work. See event.h for how lanes wait for each other.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <variant>
#include <vector>

#include "runtime/base/os/thread.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/event.h"
#include "runtime/device/cpu/memory.h"
#include "runtime/device/host/splitter.h"

namespace cairn::device::cpu {

class CpuQueue : public Queue {
 public:
  CpuQueue(std::shared_ptr<host::State> state, std::shared_ptr<host::HostGroup> group, Lane lane);
  ~CpuQueue() override;  // finishes what was submitted
  void reserve(size_t works, size_t parts) override;
  void launch(const kernels::Kernel& kernel, const kernels::Call& call) override;
  void copy(Location to, Location from, int64_t bytes) override;
  void copy(std::span<const Copy> parts) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void synchronize() override;
  double take_stall_seconds() override { return take(stall_); }
  double take_busy_seconds() override { return take(busy_); }
  std::array<Traffic, kTierCount> take_traffic() override;
  void trace(bool on) override;
  std::vector<Busy> take_trace() override;
  void skip_copies_while(const std::atomic<bool>* flag) override { skip_copies_.store(flag); }

 private:
  struct LaunchWork {
    const kernels::Kernel* kernel;
    kernels::Call call;
  };
  struct CopyWork {
    const CpuBlock *to, *from;
    Part one;
    std::span<const Copy> many;  // instead of `one`, if there are any
  };
  using Work = std::variant<LaunchWork, CopyWork, Mark>;

  void submit(Work work);
  bool take_batch();  // false: the queue ends
  void loop();
  void perform(const Work& work);
  void perform(const CopyWork& job);
  template <class Body>
  void guarded(const Body& body);
  void add(std::atomic<int64_t>& total, host::Clock::time_point begin, host::Clock::time_point end);
  static double take(std::atomic<int64_t>& total) { return static_cast<double>(total.exchange(0)) * 1e-9; }

  const std::shared_ptr<host::State> state_;
  const std::shared_ptr<host::HostGroup> group_;
  const Lane lane_;
  const std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();
  struct Moved {
    std::atomic<int64_t> bytes{0}, busy{0};
  };
  std::atomic<int64_t> stall_{0}, busy_{0};  // nanoseconds
  std::array<Moved, kTierCount> moved_;
  std::atomic<bool> tracing_{false};
  std::atomic<const std::atomic<bool>*> skip_copies_{nullptr};

  // What the thread works with. reserve() lays a larger one out for it: the thread itself must not ask for memory.
  struct Hands {
    std::vector<Work> batch;
    std::vector<Part> parts;
    std::vector<host::Piece> pieces;
  };
  static Hands hands_for(size_t works, size_t parts);

  std::mutex mutex_;  // guards the next seven
  std::condition_variable filled_;
  std::vector<Work> inbox_;
  Hands larger_;
  bool laid_out_ = false;  // larger_ is there to be taken
  std::vector<Busy> trace_;
  uint64_t submitted_ = 0;
  bool sleeping_ = false, ending_ = false;
  std::atomic<bool> inbox_filled_{false};  // lets an idle compute lane look without the lock

  Hands hands_;       // the thread's own, as the next one
  bool idle_ = true;  // nothing to do since the last copy
  host::Splitter splitter_;
  Thread thread_;
};

}  // namespace cairn::device::cpu
