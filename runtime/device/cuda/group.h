// Queues that work together: they fail together, and are recorded together.
#pragma once
#include <array>

#include "runtime/device/cuda/memory.h"

namespace cairn::device::cuda {

class CudaQueue;
inline constexpr size_t kLanes = 3;

// Seed, step and micro-batch of a recording's next run: written on the host, copied by the first node of its
// graph.
class KeySlot {
 public:
  explicit KeySlot(State& state) : host_(state, Tier::kHost, kBytes) {
    state.must(cudaMalloc(&device_, kBytes), "cudaMalloc of a key");
  }
  ~KeySlot() { cudaFree(device_); }
  KeySlot(const KeySlot&) = delete;
  KeySlot& operator=(const KeySlot&) = delete;
  void set(const RandomKey& key) { *reinterpret_cast<RandomKey*>(host_.address()) = key; }
  const RandomKey* device() const { return static_cast<const RandomKey*>(device_); }
  cudaError_t submit_copy(cudaStream_t stream) {
    return cudaMemcpyAsync(device_, host_.address(), sizeof(RandomKey), cudaMemcpyHostToDevice, stream);
  }

 private:
  static constexpr int64_t kBytes = kPageBytes;
  HostMemory host_;
  void* device_ = nullptr;
};

class CudaGroup : public Group {
 public:
  explicit CudaGroup(std::shared_ptr<State> shared) : state(std::move(shared)), key(*state) {}
  bool poisoned() const override { return poison.set() || state->lost.set(); }
  bool is_recording() const { return recording != 0; }

  const std::shared_ptr<State> state;
  cpu::Poison poison;
  std::array<CudaQueue*, kLanes> queues{};  // while they live
  uint64_t recording = 0, recordings = 0;   // number of the one under way, 0: none; how many there were
  KeySlot key;
};

}  // namespace cairn::device::cuda
