// What kernels over one tensor (optimizer.cu) and over many (optimizer_batch.cu) do alike, to the bit: the
// update of a group of elements (updates.h has that of one), the sum of squares of a chunk.
#pragma once
#include <algorithm>
#include <limits>

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/optimizers/parameter.h"
#include "kernels/cuda/optimizers/updates.h"
#include "runtime/base/optimizers/squares.h"

namespace cairn::kernels::cuda {

inline constexpr int kOptimizerThreads = kSquaresThreads;

// ---- updates

// Of a tensor, one for each of its states.
template <int kStates>
struct StatePointers {
  float* at[array_of(kStates)];
};

// Neighbouring elements of a tensor, in registers.
template <class Optimizer, int kCount>
struct UpdateGroup {
  Group<kCount> grad, p, state[array_of(Optimizer::kStates)];

  template <class P>
  __device__ __forceinline__ void read_all(const float* from_grad, const P& from_p,
                                           const StatePointers<Optimizer::kStates>& from, int64_t at) {
    grad = read<kCount>(from_grad + at);
    p = read<kCount>(from_p.at + at);
    CAIRN_UNROLL for (int k = 0; k < Optimizer::kStates; ++k) state[k] = read<kCount>(from.at[k] + at);
  }
  __device__ __forceinline__ void update(const Optimizer& optimizer) {
    CAIRN_UNROLL for (int i = 0; i < kCount; ++i) {
      float of_element[array_of(Optimizer::kStates)];
      CAIRN_UNROLL for (int k = 0; k < Optimizer::kStates; ++k) of_element[k] = state[k].at[i];
      optimizer(grad.at[i], p.at[i], of_element);
      CAIRN_UNROLL for (int k = 0; k < Optimizer::kStates; ++k) state[k].at[i] = of_element[k];
    }
  }
  template <class P>
  __device__ __forceinline__ void write_all(const P& to_p, const StatePointers<Optimizer::kStates>& to,
                                            int64_t at) const {
    to_p.put(at, p);
    CAIRN_UNROLL for (int k = 0; k < Optimizer::kStates; ++k) write(to.at[k] + at, state[k]);
  }
};

// What gradients are multiplied by in an update of several kernels, found by the one thread of the first: see
// ops.def for total and grad_scale, which are nullptr together. Not finite: nothing is to be updated.
__device__ __forceinline__ double open_update(const double* hyper, const double* total, double* grad_scale) {
  if (grad_scale == nullptr) return hyper[update_op::kFactorSlot];
  if (!std::isfinite(*total)) *grad_scale = std::numeric_limits<double>::quiet_NaN();
  return *grad_scale;
}

// ---- the sum of squares, which are exact in float64: sums of chunks, added up in a fixed order

struct Chunks {
  int64_t size = 0, parts = 0;

  explicit Chunks(int64_t count) {
    size = squares_chunk(count);
    parts = (count + size - 1) / size;
  }
};

// Elements that are read at once, through a pointer or what stands for one.
template <class From>
inline constexpr int kReadAtOnce = [] {
  if constexpr (std::is_pointer_v<From>) return kGroupOf<std::remove_const_t<std::remove_pointer_t<From>>>;
  return 4;
}();

// Of elements [begin, end), for every thread of the block. begin is a multiple of 8.
template <class From>
__device__ __forceinline__ double chunk_squares(const From& x, int64_t begin, int64_t end, double* scratch) {
  constexpr int kCount = kReadAtOnce<From>, kLoads = 4;
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

// A block a chunk.
template <class From>
__global__ void __launch_bounds__(kOptimizerThreads)
    square_parts(From x, int64_t count, int64_t chunk, double* parts) {
  CAIRN_SHARED double scratch[kWarp];
  const int64_t begin = blockIdx.x * chunk, end = begin + chunk < count ? begin + chunk : count;
  const double total = chunk_squares(x, begin, end, scratch);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

// Of all chunks' sums, for every thread of the block.
__device__ __forceinline__ double sum_of_parts(const double* parts, int count, double* scratch) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kOptimizerThreads) sum += parts[i];
  return block_sum(sum, scratch);
}

}  // namespace cairn::kernels::cuda
