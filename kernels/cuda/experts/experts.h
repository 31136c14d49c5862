// What the kernels of mixtures of experts share: a warp for each row.
#pragma once
#include "kernels/cuda/common/support.h"

namespace cairn::kernels::cuda {

inline constexpr int kRowsThreads = 256, kRowsOfBlock = kRowsThreads / kWarp;

inline LaunchSize size_of_rows(int64_t rows) {
  return {.blocks = (rows + kRowsOfBlock - 1) / kRowsOfBlock, .threads = kRowsThreads};
}
__device__ __forceinline__ int64_t row_of_warp() {
  return static_cast<int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kWarp;
}
__device__ __forceinline__ int lane_of_row() { return static_cast<int>(threadIdx.x % kWarp); }

}  // namespace cairn::kernels::cuda
