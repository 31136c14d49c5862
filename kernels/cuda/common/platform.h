// What every CUDA kernel file includes. nvcc compiles the file for GPUs; any C++ compiler compiles the same
// file for the emulation, which runs blocks of threads on the processor (tests/cuda/emulated): slow, but
// every line of a kernel is tested where there is no GPU. So kernels use the part of CUDA C++ that both have:
//
//   __global__, __device__, __host__, __forceinline__, __restrict__, __launch_bounds__
//   threadIdx.x, blockDim.x (blocks are one-dimensional), blockIdx.{x,y,z}, gridDim.{x,y,z}
//   CAIRN_SHARED T name[n];         static shared memory, at the head of a kernel
//   CAIRN_DYNAMIC_SHARED(T, name);  the rest of it: as many bytes as the launch was told
//   CAIRN_TABLE(T, name)            a parameter of up to 32764 bytes, which all threads read in place
//   CAIRN_UNROLL, CAIRN_UNROLL_BY(n)  before a loop whose body nvcc would find too long to unroll
//   __syncthreads(), __syncwarp(), __shfl_xor_sync, __shfl_down_sync, __shfl_sync
//     (called by all threads of the block, or of the warp; full masks)
//   uint2, uint4, float2, float4 and make_*; rsqrtf, fminf, ...: the functions of <cmath>
//
// and launch() in place of <<<>>>. No atomics: the same inputs give the same bits.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define CAIRN_SHARED __shared__
#define CAIRN_UNROLL _Pragma("unroll")
#define CAIRN_PRAGMA(text) _Pragma(#text)
#define CAIRN_UNROLL_BY(n) CAIRN_PRAGMA(unroll n)
#define CAIRN_TABLE(T, name) const __grid_constant__ T name
#define CAIRN_DYNAMIC_SHARED(T, name)                           \
  extern __shared__ __align__(16) unsigned char cairn_shared[]; \
  T* const name = reinterpret_cast<T*>(cairn_shared)
#else
#include <emulated/simt.h>
#define CAIRN_TABLE(T, name) const T& name  // of the launch's own copy: a thread's stack is small
#define CAIRN_UNROLL
#define CAIRN_UNROLL_BY(n)
#endif

#include "runtime/base/cuda/status.h"

namespace cairn::kernels::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

struct LaunchSize {
  int64_t blocks = 1;  // along x: up to 2^31 - 1
  int threads = kWarp;
  int64_t shared_bytes = 0;            // dynamic
  int64_t blocks_y = 1, blocks_z = 1;  // up to 65535
};

// A kernel may use more than 48 KiB of shared memory only after this, once per kernel function, when it is
// made.
template <class... Parameters>
void allow_shared([[maybe_unused]] void (*kernel)(Parameters...), [[maybe_unused]] int64_t bytes) {
#ifdef __CUDACC__
  const cudaError_t status =
      cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bytes));
  require(status == cudaSuccess, Code::kUnsupported, "a kernel wants ", bytes,
          " bytes of shared memory: ", cudaGetErrorString(status));
#endif
}

// While the kernel runs, as much of a multiprocessor's memory as possible is shared memory, and little of it a cache:
// for kernels whose blocks take all of it.
template <class... Parameters>
void prefer_shared([[maybe_unused]] void (*kernel)(Parameters...)) {
#ifdef __CUDACC__
  const cudaError_t status =
      cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                           cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  require(status == cudaSuccess, Code::kUnsupported,
          "a kernel's shared memory: ", cudaGetErrorString(status));
#endif
}

// Multiprocessors that a grid whose blocks go around is made for; the same on every GPU, as sums depend on it. The
// emulation's are few, so that blocks do go around.
#ifdef __CUDACC__
inline constexpr int kGridMultiprocessors = 132;
#else
inline constexpr int kGridMultiprocessors = 2;
#endif

// How many multiprocessors the device has, and how much shared memory the blocks on one of them share. The emulation's
// are few, so that blocks take several turns.
struct Multiprocessors {
  int count = 1;
  int64_t shared_bytes = 228 << 10;
};
inline constexpr int64_t kSharedOfSystem = 1024;  // of each block
inline Multiprocessors multiprocessors() {
  Multiprocessors m;
#ifdef __CUDACC__
  int device = 0, count = 0, bytes = 0;
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess &&
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device) == cudaSuccess;
  require(known, Code::kUnsupported, "a device does not say how many multiprocessors it has");
  m.count = count;
  m.shared_bytes = bytes;
#endif
  return m;
}

// Submits the kernel to a stream (nullptr: the default one). Throws if it cannot be started.
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, void (*kernel)(Parameters...), const LaunchSize& size,
            Arguments... arguments) {
  if (size.blocks <= 0 || size.blocks_y <= 0 || size.blocks_z <= 0) return;
#ifdef __CUDACC__
  const dim3 grid(static_cast<unsigned>(size.blocks), static_cast<unsigned>(size.blocks_y),
                  static_cast<unsigned>(size.blocks_z));
  kernel<<<grid, static_cast<unsigned>(size.threads), static_cast<size_t>(size.shared_bytes), stream>>>(
      static_cast<Parameters>(arguments)...);
  // Its own mistake, or an earlier kernel's failure, which comes to light now.
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) [[unlikely]]
    fail(code_of(status), "a kernel could not be started: ", cudaGetErrorString(status), " (",
         cudaGetErrorName(status), ')', advice_of(status));
#else
  const emulated::Grid grid{size.blocks, size.blocks_y, size.blocks_z, size.threads, size.shared_bytes};
  emulated::submit(stream,
                   [=] { emulated::run(grid, [=] { kernel(static_cast<Parameters>(arguments)...); }); });
#endif
}

}  // namespace cairn::kernels::cuda
