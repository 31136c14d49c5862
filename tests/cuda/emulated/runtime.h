// An emulated CUDA runtime behind include/cuda_runtime_api.h. Streams are threads; events order them; copies
// take their time, and check that both ends lie in memory that was allocated (or, on the host, registered);
// captured graphs keep what depends on what, and every launch runs them in another order that this allows.
// Copies of pageable memory behave as they do on hardware: to the device, the call returns once the bytes are
// staged, and they land later; where no stream is named, that is in the legacy stream, which no other stream
// waits for (all are non-blocking; others are refused). Kernels run as simt.h says.
#pragma once
#include <cstdint>
#include <string_view>

#include "tests/cuda/emulated/include/cuda_runtime_api.h"

namespace cairn::kernels::cuda::emulated {

// The call number `after` (0: the next one) of the named function, e.g. "cudaMalloc", fails with `status`,
// and the `times` - 1 calls after it. Sticky statuses (illegal address, launch failure, ECC) are what every
// later call returns.
void fail(std::string_view function, cudaError_t status, int after = 0, int times = 1);
void reset();  // no failures, no sticky status
// What comes in no certain order comes in another one from here on. Tests run under several; the first is
// $CAIRN_EMULATION_SEED, or 1.
void seed(uint64_t number);

struct Gpu {
  int count = 1, major = 9, minor = 0, driver = 13000;
  int64_t memory_bytes = int64_t{8} << 30;
};
Gpu& gpu();  // what the next device queries see

// The libraries that kernels ask. `attention`: 0: it cannot be opened; or a version as cuDNN counts
// (91200: 9.12.0), before 9.25 with a gradient whose workspace is quadratic in the length.
struct Libraries {
  int attention = 92500;
  bool first_algorithm_slow = false;  // of every product: others would be better
  bool sums_slow = false;             // of a matrix's columns beside a product
};
Libraries& libraries();

// Calls of the named function since reset().
int64_t calls(std::string_view function);
int64_t allocated_bytes();   // by cudaMalloc, now
int64_t registered_bytes();  // by cudaHostRegister, now
int64_t pageable_copies();   // of cudaMemcpyAsync, since reset(): they hold up the host, or its copies

}  // namespace cairn::kernels::cuda::emulated
