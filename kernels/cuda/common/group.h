// Groups of neighbouring elements, in memory float32 or of 16 bits and in registers float32: one access of 8 or
// 16 bytes each. A group of 1 is an element.
#pragma once
#include <type_traits>

#include "kernels/cuda/common/support.h"
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace cairn::kernels::cuda {

template <int kCount>
struct Group {
  float at[kCount];
};

// Elements of a group when operands of the types named are swept over side by side: 16 bytes of the widest.
template <class... T>
inline constexpr int kGroupOf = ((sizeof(T) == 2) && ...) ? 8 : 4;

// Two elements of T in a register, the first in the lower half.
template <class T>
__device__ __forceinline__ void unpack(unsigned word, float* to) {
  if constexpr (std::is_same_v<T, bf16>) {
    to[0] = __uint_as_float(word << 16);
    to[1] = __uint_as_float(word & 0xffff0000u);
  } else {
    const T low = {static_cast<uint16_t>(word)}, high = {static_cast<uint16_t>(word >> 16)};
    to[0] = load(&low);
    to[1] = load(&high);
  }
}
template <class T>
__device__ __forceinline__ unsigned pack(const float* from) {
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, bf16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(from[0], from[1]);
    return *reinterpret_cast<const unsigned*>(&pair);
  } else {
    const __half2 pair = __floats2half2_rn(from[0], from[1]);
    return *reinterpret_cast<const unsigned*>(&pair);
  }
#else
  return round_to<T>(from[0]).bits | static_cast<unsigned>(round_to<T>(from[1]).bits) << 16;
#endif
}

// p is a multiple of the group's bytes.
template <int kCount>
__device__ __forceinline__ Group<kCount> read(const float* p) {
  if constexpr (kCount == 1) {
    return {{*p}};
  } else if constexpr (kCount == 4) {
    const float4 v = *reinterpret_cast<const float4*>(p);
    return {{v.x, v.y, v.z, v.w}};
  } else {  // two accesses
    static_assert(kCount == 8);
    const float4 v = *reinterpret_cast<const float4*>(p), w = *reinterpret_cast<const float4*>(p + 4);
    return {{v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w}};
  }
}
template <int kCount, class T>
requires(sizeof(T) == 2) __device__ __forceinline__ Group<kCount> read(const T* p) {
  Group<kCount> group;
  if constexpr (kCount == 1) {
    group.at[0] = load(p);
  } else if constexpr (kCount == 4) {
    const uint2 v = *reinterpret_cast<const uint2*>(p);
    unpack<T>(v.x, group.at);
    unpack<T>(v.y, group.at + 2);
  } else {
    static_assert(kCount == 8);
    const uint4 v = *reinterpret_cast<const uint4*>(p);
    unpack<T>(v.x, group.at);
    unpack<T>(v.y, group.at + 2);
    unpack<T>(v.z, group.at + 4);
    unpack<T>(v.w, group.at + 6);
  }
  return group;
}

template <int kCount>
__device__ __forceinline__ void write(float* p, const Group<kCount>& group) {
  if constexpr (kCount == 1) {
    *p = group.at[0];
  } else {
    static_assert(kCount == 4);
    *reinterpret_cast<float4*>(p) = make_float4(group.at[0], group.at[1], group.at[2], group.at[3]);
  }
}
template <int kCount, class T>
requires(sizeof(T) == 2) __device__ __forceinline__ void write(T* p, const Group<kCount>& group) {
  if constexpr (kCount == 1) {
    store(p, group.at[0]);
  } else if constexpr (kCount == 4) {
    *reinterpret_cast<uint2*>(p) = make_uint2(pack<T>(group.at), pack<T>(group.at + 2));
  } else {
    static_assert(kCount == 8);
    *reinterpret_cast<uint4*>(p) =
        make_uint4(pack<T>(group.at), pack<T>(group.at + 2), pack<T>(group.at + 4), pack<T>(group.at + 6));
  }
}

// ---- elementwise kernels: blocks of kElementwiseThreads, each thread with kElementwiseGroups groups, a
// block's width apart.

inline constexpr int kElementwiseThreads = 256, kElementwiseGroups = 2;

inline LaunchSize elementwise_size(int64_t groups) {
  constexpr int64_t kPerBlock = kElementwiseThreads * kElementwiseGroups;
  return {.blocks = std::max<int64_t>(1, (groups + kPerBlock - 1) / kPerBlock),
          .threads = kElementwiseThreads};
}
// The thread's first group.
__device__ __forceinline__ int64_t elementwise_first() {
  return static_cast<int64_t>(blockIdx.x) * (kElementwiseThreads * kElementwiseGroups) + threadIdx.x;
}
// Of `count` elements in groups of kCount, those left over are one for each of the last block's first
// threads: the thread's, or -1.
template <int kCount>
__device__ __forceinline__ int64_t elementwise_rest(int64_t count) {
  const int64_t i = count / kCount * kCount + threadIdx.x;
  return kCount > 1 && blockIdx.x == gridDim.x - 1 && i < count ? i : -1;
}

// y[i] = f(x[i]...). All inputs of a thread are read before it writes, so y may lie on any of them.
template <class F, class Y, class... X>
__global__ void __launch_bounds__(kElementwiseThreads) map(F f, int64_t count, Y* y, const X*... x) {
  constexpr int kCount = kGroupOf<Y, X...>;
  const int64_t groups = count / kCount, first = elementwise_first();
  Group<kCount> in[kElementwiseGroups][sizeof...(X)];
  for (int u = 0; u < kElementwiseGroups; ++u) {
    const int64_t g = first + u * kElementwiseThreads;
    int operand = 0;
    if (g < groups) ((in[u][operand++] = read<kCount>(x + g * kCount)), ...);
  }
  CAIRN_UNROLL for (int u = 0; u < kElementwiseGroups; ++u) {
    const int64_t g = first + u * kElementwiseThreads;
    if (g >= groups) break;
    Group<kCount> out;
    CAIRN_UNROLL for (int i = 0; i < kCount; ++i) {
      if constexpr (sizeof...(X) == 1)
        out.at[i] = f(in[u][0].at[i]);
      else
        out.at[i] = f(in[u][0].at[i], in[u][1].at[i]);
    }
    write(y + g * kCount, out);
  }
  const int64_t rest = elementwise_rest<kCount>(count);
  if (rest >= 0) store(y + rest, f(load(x + rest)...));
}

template <class F, class Y, class... X>
void launch_map(const Call& call, F f, int64_t count, Y* y, const X*... x) {
  launch(stream_of(call), map<F, Y, X...>, elementwise_size(count / kGroupOf<Y, X...>), f, count, y, x...);
}

}  // namespace cairn::kernels::cuda
