#include "runtime/device/cuda/state.h"

namespace cairn::device::cuda {

State::~State() {
  if (stream_ == nullptr) return;
  cudaSetDevice(ordinal);
  cudaStreamDestroy(stream_);
}

cudaStream_t State::host_stream() {
  enter();
  const std::lock_guard lock(stream_mutex_);
  if (stream_ == nullptr)
    must(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0), "a stream for the host's copies");
  return stream_;
}

void State::copy_now(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind, std::string_view what) {
  cudaStream_t const stream = host_stream();
  must(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream), what);
  must(cudaStreamSynchronize(stream), what);
}

void State::zero_now(void* memory, int64_t bytes) {
  cudaStream_t const stream = host_stream();
  must(cudaMemsetAsync(memory, 0, static_cast<size_t>(bytes), stream), "zeroing a block");
  must(cudaStreamSynchronize(stream), "zeroing a block");
}

// For errors of the host tier: it is this machine's memory that they are about.
DeviceInfo State::host_info(const DeviceInfo& info) {
  DeviceInfo host;
  host.name = info.name;
  host.memory_bytes = info.host_memory_bytes;
  host.memory_limit = info.memory_limit;
  host.threads = info.host_threads;
  host.disk_directory = info.disk_directory;
  return host;
}

}  // namespace cairn::device::cuda
