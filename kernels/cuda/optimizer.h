// What kernels over one tensor (optimizer.cu) and over many (optimizer_batch.cu) do alike, to the bit: AdamW
// of an element, the sum of squares of a chunk.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/cuda/group.h"

namespace cairn::kernels::cuda {

inline constexpr int kOptimizerThreads = 256;

// ---- AdamW

struct Factors {
  float gradient, one_minus_beta1, beta2, one_minus_beta2, root_bias2, eps, decay, step;
};

__device__ __forceinline__ Factors factors_of(const double* hyper, double gradient) {
  const double rate = hyper[0], beta1 = hyper[1], beta2 = hyper[2], eps = hyper[3], decay = hyper[4];
  return {.gradient = static_cast<float>(gradient),
          .one_minus_beta1 = static_cast<float>(1 - beta1),
          .beta2 = static_cast<float>(beta2),
          .one_minus_beta2 = static_cast<float>(1 - beta2),
          .root_bias2 = static_cast<float>(sqrt(hyper[6])),
          .eps = static_cast<float>(eps),
          .decay = static_cast<float>(1 - rate * decay),
          .step = static_cast<float>(rate / hyper[5])};
}

// A product that is rounded before anything is added to it.
__device__ __forceinline__ float times(float a, float b) {
#ifdef __CUDACC__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

// The order of operations of kernels/cpu/optimizer.cc.
__device__ __forceinline__ void update(const Factors& f, float grad, float& p, float& m, float& v) {
  const float g = times(grad, f.gradient);
  m = fmaf(g - m, f.one_minus_beta1, m);
  v = fmaf(times(g, g), f.one_minus_beta2, times(v, f.beta2));
  const float denominator = sqrtf(v) / f.root_bias2 + f.eps;
  p = fmaf(-f.step, m / denominator, times(p, f.decay));
}

// ---- the sum of squares, which are exact in float64: sums of chunks, added up in a fixed order

struct Chunks {
  int64_t size = 0, parts = 0;

  explicit Chunks(int64_t count) {
    constexpr int64_t kLeast = 8192, kParts = 1024;  // at most so many parts
    size = align_up(std::max(kLeast, (count + kParts - 1) / kParts), 8);
    parts = (count + size - 1) / size;
  }
};

// Of elements [begin, end), for every thread of the block. begin is a multiple of 8.
template <class T>
__device__ __forceinline__ double chunk_squares(const T* x, int64_t begin, int64_t end, double* scratch) {
  constexpr int kCount = kGroupOf<T>, kLoads = 4;
  const int64_t groups = (end - begin) / kCount;
  double sums[kCount] = {};
  for (int64_t g = threadIdx.x; g < groups; g += kLoads * kOptimizerThreads) {
    Group<kCount> in[kLoads];
    for (int u = 0; u < kLoads; ++u) {
      in[u] = {};
      if (g + u * kOptimizerThreads < groups)
        in[u] = read<kCount>(x + begin + (g + u * kOptimizerThreads) * kCount);
    }
    for (int u = 0; u < kLoads; ++u)
      for (int i = 0; i < kCount; ++i) {
        const double v = in[u].at[i];
        sums[i] += v * v;
      }
  }
  for (int width = kCount / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  const int64_t rest = begin + groups * kCount + threadIdx.x;
  if (rest < end) {
    const double v = load(x + rest);
    sums[0] += v * v;
  }
  return block_sum(sums[0], scratch);
}

// Of all chunks' sums, for every thread of the block.
__device__ __forceinline__ double sum_of_parts(const double* parts, int count, double* scratch) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kOptimizerThreads) sum += parts[i];
  return block_sum(sum, scratch);
}

}  // namespace cairn::kernels::cuda
