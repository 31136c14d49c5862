// What every CUDA kernel file uses besides runtime/base/kernel_closure.h: element types, vectors of 16 bytes,
// sums in a fixed order.
#pragma once
#include "kernels/cuda/common/platform.h"
#include "runtime/base/checked.h"
#include "runtime/base/cuda/stream_context.h"
#include "runtime/base/kernel_closure.h"

namespace cairn::kernels::cuda {

inline StreamContext lane_of(const Call& call) {
  return call.lane ? *static_cast<const StreamContext*>(call.lane) : StreamContext{};
}
inline cudaStream_t stream_of(const Call& call) { return lane_of(call).stream; }

inline bool plain_i32(const TensorDesc& d) { return d.dtype == DType::kI32 && d.packed_bytes == 0; }

// with_float() for types of 16 bits alone.
inline bool is_half(DType t) { return t == DType::kBF16 || t == DType::kF16; }
template <class Body>
auto with_half(DType dtype, const Body& body) {
  return dtype == DType::kF16 ? body(f16{}) : body(bf16{});
}

// ---- on the device

__device__ __forceinline__ float load(const float* p) { return *p; }
__device__ __forceinline__ float load(const bf16* p) {
#ifdef __CUDACC__
  return __uint_as_float(static_cast<unsigned>(p->bits) << 16);
#else
  return to_float(*p);
#endif
}
__device__ __forceinline__ float load(const f16* p) {
#ifdef __CUDACC__
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(p->bits));
  return v;
#else
  return to_float(*p);
#endif
}
__device__ __forceinline__ void store(float* p, float v) { *p = v; }
__device__ __forceinline__ void store(f16* p, float v) {  // to nearest even
#ifdef __CUDACC__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p->bits) : "f"(v));
#else
  *p = to_f16(v);
#endif
}
__device__ __forceinline__ void store(bf16* p, float v) {  // to nearest even
#ifdef __CUDACC__
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(p->bits) : "f"(v));
#else
  *p = to_bf16(v);
#endif
}

// A product that is rounded before anything is added to it.
__device__ __forceinline__ float times(float a, float b) {
#ifdef __CUDACC__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

// 16 bytes of T: one memory access per thread.
template <class T>
struct alignas(16) Vector {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(T));
  T at[kCount];
};
template <class T>
__device__ __forceinline__ Vector<T> load_vector(const T* p) {
#ifdef __CUDACC__
  Vector<T> v;
  *reinterpret_cast<uint4*>(&v) = *reinterpret_cast<const uint4*>(p);
  return v;
#else
  using Whole = Vector<T>;
  return emulated::load_aligned<Whole>(p);
#endif
}
template <class T>
__device__ __forceinline__ void store_vector(T* p, const Vector<T>& v) {
#ifdef __CUDACC__
  *reinterpret_cast<uint4*>(p) = *reinterpret_cast<const uint4*>(&v);
#else
  emulated::store_aligned(p, v);
#endif
}

// Prefetches the cache line with p into the level 2 cache.
__device__ __forceinline__ void prefetch(const void* p) {
#ifdef __CUDACC__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
#else
  static_cast<void>(p);
#endif
}

// As many float32 numbers as a vector of something else has elements: from `p`[at], or `otherwise` where p is
// nullptr.
template <int kCount>
__device__ __forceinline__ void load_floats(const float* p, int64_t at, float otherwise,
                                            float (&to)[kCount]) {
  static_assert(kCount % 4 == 0);
  for (int i = 0; i < kCount; i += 4) {
    Vector<float> v = {{otherwise, otherwise, otherwise, otherwise}};
    if (p != nullptr) v = load_vector(p + at + i);
    for (int j = 0; j < 4; ++j) to[i + j] = v.at[j];
  }
}

inline bool vectors_fit(int64_t elements, DType dtype) { return elements * dtype_bytes(dtype) % 16 == 0; }

// Every lane gets the warp's sum (greatest); the order is fixed.
template <class T>
__device__ __forceinline__ T warp_sum(T v) {
  for (int by = kWarp / 2; by > 0; by /= 2) v += __shfl_xor_sync(kAllLanes, v, by);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
  for (int by = kWarp / 2; by > 0; by /= 2) v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, by));
  return v;
}

// Every thread gets the block's sum; blockDim.x is a multiple of 32. `scratch`: 32 Ts of shared memory, free
// again after the next __syncthreads().
template <class T>
__device__ T block_sum(T v, T* scratch) {
  const int warps = static_cast<int>(blockDim.x) / kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  v = warp_sum(v);
  if (warps == 1) return v;
  if (threadIdx.x % kWarp == 0) scratch[warp] = v;
  __syncthreads();
  T total = scratch[0];
  for (int w = 1; w < warps; ++w) total += scratch[w];
  __syncthreads();
  return total;
}
__device__ inline float block_max(float v, float* scratch) {
  const int warps = static_cast<int>(blockDim.x) / kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  v = warp_max(v);
  if (warps == 1) return v;
  if (threadIdx.x % kWarp == 0) scratch[warp] = v;
  __syncthreads();
  float most = scratch[0];
  for (int w = 1; w < warps; ++w) most = fmaxf(most, scratch[w]);
  __syncthreads();
  return most;
}

// What the block's threads before this one bring in all; *total: all threads. `scratch`: an int for each warp.
template <int kThreads>
__device__ __forceinline__ int sum_before(int own, int* scratch, int* total) {
  constexpr int kWarps = kThreads / kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  int sum = own;
  for (int by = 1; by < kWarp; by *= 2) {
    const int other = __shfl_sync(kAllLanes, sum, lane >= by ? lane - by : lane);
    if (lane >= by) sum += other;
  }
  if (lane == kWarp - 1) scratch[warp] = sum;
  __syncthreads();
  int before = 0;
  *total = 0;
  CAIRN_UNROLL_BY(4) for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += scratch[w];
    *total += scratch[w];
  }
  __syncthreads();
  return before + sum - own;
}

}  // namespace cairn::kernels::cuda
