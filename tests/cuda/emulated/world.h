// What the emulated CUDA runtime knows: memory, failures to come, calls made, whether the device is lost.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "tests/cuda/emulated/runtime.h"

namespace cairn::kernels::cuda::emulated {

struct World {
  struct Failure {
    cudaError_t status;
    int after, times;
  };
  std::mutex mutex;  // guards all but the sticky status
  std::map<std::string, Failure, std::less<>> failures;
  std::map<std::string, int64_t, std::less<>> calls;
  std::map<const char*, size_t> device, host;  // memory by address
  std::atomic<cudaError_t> sticky{cudaSuccess};
  std::atomic<int64_t> pageable{0};
  Gpu gpu;
  Libraries libraries;
};
World& world();

// Counts the call; what it returns if it does not do its work.
cudaError_t enter(std::string_view function);
// The device is lost, if it was not before.
void stick(cudaError_t status);
bool inside(const std::map<const char*, size_t>& blocks, const char* at, size_t bytes);

}  // namespace cairn::kernels::cuda::emulated
