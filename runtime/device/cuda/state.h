// What the blocks, queues and events of one GPU share. They hold it alive: release order never matters.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "runtime/device/cuda/status.h"
#include "runtime/device/host/state.h"

namespace cairn::device::cuda {

// Host and disk tiers are the CPU device's, registered with the driver; they share its options and faults.
struct State {
  State(DeviceInfo device_info, int device_ordinal, int memory_node, const DeviceOptions& options)
      : info(std::move(device_info)),
        ordinal(device_ordinal),
        node(memory_node),
        host(host_info(info), options) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // The device is per thread in CUDA: every call that a new thread may make first begins with this. Throws
  // kDeviceLost once the device is lost.
  void enter() const {
    lost.raise();
    check(cudaSetDevice(ordinal), info.name);
  }
  // Notes a lost device, so that every later call says the same. Returns the error.
  Error note(cudaError_t status, std::string_view what) const {
    Error error = error_of(status, what);
    if (is_lost(status)) lost.keep(error);
    return error;
  }
  void must(cudaError_t status, std::string_view what) const {
    if (status != cudaSuccess) [[unlikely]]
      throw note(status, what);
  }

  // For the host's own bytes, at once: they have landed when these return, whatever a queue does next. In a
  // stream of their own: the legacy stream would wait for the host program's work, and a copy of pageable
  // memory in it lands some time after its call returned.
  void copy_now(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind, std::string_view what);
  void zero_now(void* memory, int64_t bytes);

  const DeviceInfo info;
  const int ordinal;
  const int node;  // of host memory near the GPU, -1: unknown
  Ledger& ledger() { return host.ledger; }
  host::State host;
  mutable host::Poison lost;  // the device is lost

 private:
  static DeviceInfo host_info(const DeviceInfo& info);
  cudaStream_t host_stream();

  std::mutex stream_mutex_;
  cudaStream_t stream_ = nullptr;  // made at its first use
};

}  // namespace cairn::device::cuda
