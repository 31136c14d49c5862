// Queues that work together: they fail together, and are recorded together.
#pragma once
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "runtime/device/cuda/memory.h"

namespace cairn::device::cuda {

class CudaQueue;

// Seed, step and micro-batch of a recording's run, on the device, where the recording's kernels read them.
class KeySlot {
 public:
  explicit KeySlot(const State& state) {
    state.must(cudaMalloc(&device_, sizeof(RandomKey)), "cudaMalloc of a key");
  }
  ~KeySlot() { cudaFree(device_); }
  KeySlot(const KeySlot&) = delete;
  KeySlot& operator=(const KeySlot&) = delete;
  const RandomKey* device() const { return static_cast<const RandomKey*>(device_); }
  // What the stream does from here on finds this key. It is pageable memory: staged when the call returns.
  cudaError_t submit(const RandomKey& key, cudaStream_t stream) {
    return cudaMemcpyAsync(device_, &key, sizeof key, cudaMemcpyHostToDevice, stream);
  }

 private:
  void* device_ = nullptr;
};

// Blocks streams while work is submitted to them, so that the time of short work does not include its submission. Use it for
// little work: a stream queues only so much before submitting blocks.
class Gate {
 public:
  static constexpr std::chrono::milliseconds kLongest{20};
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  // A host function of a stream.
  static void wait(void* user) {
    auto& gate = *static_cast<Gate*>(user);
    std::unique_lock lock(gate.mutex_);
    if (!gate.changed_.wait_for(lock, kLongest, [&] { return gate.open_; })) gate.open_ = true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
};

class CudaGroup : public Group {
 public:
  explicit CudaGroup(std::shared_ptr<State> shared) : state(std::move(shared)), key(*state) {}
  bool poisoned() const override { return poison.set() || state->lost.set(); }
  bool is_recording() const { return recording != 0; }
  bool measures() const { return !is_recording() || measured == nullptr; }

  const std::shared_ptr<State> state;
  host::Poison poison;
  std::array<CudaQueue*, kLaneCount> queues{};  // while they live
  uint64_t recording = 0, recordings = 0;       // number of the one under way, 0: none; how many there were
  const Recording* measured = nullptr;          // of the one under way: whose seconds it has
  KeySlot key;
  Gate gate;  // of traced runs
};

}  // namespace cairn::device::cuda
