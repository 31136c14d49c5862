// CUDA C++'s threads on the processor: the blocks of a grid one after the other, the threads of a block as
// fibers that take turns at barriers and warp shuffles. Which block, warp or thread comes next is drawn, and
// so is when an asynchronous copy lands: a barrier or a wait too few shows under some seed (runtime.h). For
// tests: what it shows is whether a kernel computes the right thing and meets its barriers, not how fast it
// is. A barrier that some threads of a block do not reach is an error.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#include "tests/cuda/emulated/vectors.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define CAIRN_SHARED static thread_local
#define CAIRN_DYNAMIC_SHARED(T, name) \
  T* const name = static_cast<T*>(cairn::kernels::cuda::emulated::dynamic_shared())

namespace cairn::kernels::cuda::emulated {

struct Stream;  // runtime.h; nullptr: at once, on the calling thread

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

struct Grid {
  int64_t x, y, z;
  int threads;
  int64_t shared_bytes;
};

void submit(Stream* stream, std::function<void()> work);
// Runs `thread` for every thread of every block. Shared memory starts as noise in every block.
void run(const Grid& grid, const std::function<void()>& thread);

// Of the running fiber.
extern thread_local Index thread_index, block_index, block_size, grid_size;
void* dynamic_shared();
void sync_block();
void sync_warp();
// Every lane of the warp gives 8 bytes, and gets what `lane` gave.
uint64_t exchange(uint64_t given, int lane);
// Copies of 16 bytes (from nullptr: zeros) that nobody waits for until async_wait(), which leaves at most
// `left` of the thread's committed groups under way.
void async_copy(void* to, const void* from);
void async_commit();
void async_wait(int left);

template <class T>
T shuffle(T value, int lane) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(bits, lane);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
// One access of a whole T, which a GPU refuses at an address that is no multiple of its size.
void check_aligned(const void* address, size_t to);
template <class T>
T load_aligned(const void* from) {
  check_aligned(from, sizeof(T));
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
void store_aligned(void* to, const T& value) {
  check_aligned(to, sizeof(T));
  std::memcpy(to, &value, sizeof(T));
}
inline int own_lane() { return static_cast<int>(thread_index.x % 32); }

}  // namespace cairn::kernels::cuda::emulated

using cudaStream_t = cairn::kernels::cuda::emulated::Stream*;

#define threadIdx cairn::kernels::cuda::emulated::thread_index
#define blockIdx cairn::kernels::cuda::emulated::block_index
#define blockDim cairn::kernels::cuda::emulated::block_size
#define gridDim cairn::kernels::cuda::emulated::grid_size

inline void __syncthreads() { cairn::kernels::cuda::emulated::sync_block(); }
inline void __syncwarp(unsigned = ~0u) { cairn::kernels::cuda::emulated::sync_warp(); }
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return cairn::kernels::cuda::emulated::shuffle(value, lane);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return cairn::kernels::cuda::emulated::shuffle(value, cairn::kernels::cuda::emulated::own_lane() ^ mask);
}
template <class T>
T __shfl_down_sync(unsigned, T value, int by) {
  const int lane = cairn::kernels::cuda::emulated::own_lane();
  return cairn::kernels::cuda::emulated::shuffle(value, lane + by < 32 ? lane + by : lane);
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
