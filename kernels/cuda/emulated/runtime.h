// An emulated CUDA runtime behind include/cuda_runtime_api.h. Streams are threads; events order them; copies
// check that both ends lie in memory that was allocated (or, on the host, registered); captured graphs keep
// what depends on what, and every launch runs them in another order that this allows. Kernels run as simt.h
// says.
#pragma once
#include <cstdint>
#include <string_view>

#include "cuda_runtime_api.h"

namespace cairn::kernels::cuda::emulated {

// The call number `after` (0: the next one) of the named function, e.g. "cudaMalloc", fails with `status`,
// and the `times` - 1 calls after it. Sticky statuses (illegal address, launch failure, ECC) are what every
// later call returns.
void fail(std::string_view function, cudaError_t status, int after = 0, int times = 1);
void reset();  // no failures, no sticky status

struct Gpu {
  int count = 1, major = 9, minor = 0, driver = 13000;
  int64_t memory_bytes = int64_t{8} << 30;
};
Gpu& gpu();  // what the next device queries see

// Calls of the named function since reset().
int64_t calls(std::string_view function);
int64_t allocated_bytes();   // by cudaMalloc, now
int64_t registered_bytes();  // by cudaHostRegister, now

}  // namespace cairn::kernels::cuda::emulated
