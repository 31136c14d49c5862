// The gradients of distances, what attention adds to scores by how far a row and a key are apart: the kernel that makes dq
// sums the scores' gradients along the diagonals of its rows, and the sums of all rows are put together in order.
#pragma once
#include "kernels/cuda/attention/mask.h"

namespace cairn::kernels::cuda {

// Where the diagonals of `rows` rows from `first` on begin: [batch * heads][blocks of rows][keys + rows - 1], of which number
// key - (row - first) + rows - 1 is of that row and key.
__host__ __device__ __forceinline__ int64_t diagonals_at(const AttentionShape& a, int rows, int b, int h,
                                                         int first) {
  const int blocks = (a.length - 1) / rows + 1;
  return ((static_cast<int64_t>(b) * a.heads + h) * blocks + first / rows) * (a.keys + rows - 1);
}
// Those of a block or a warp of so many threads, all 0, for kernels; null where there are none.
__device__ __forceinline__ float* own_diagonals(const AttentionShape& a, int rows, int b, int h, int first,
                                                int thread, int threads, float* all) {
  if (all == nullptr) return nullptr;
  float* const own = all + diagonals_at(a, rows, b, h, first);
  for (int i = thread; i < a.keys + rows - 1; i += threads) own[i] = 0;
  return own;
}
inline int64_t diagonal_bytes(const AttentionShape& a, int rows) {
  return diagonals_at(a, rows, a.batch, 0, 0) * static_cast<int64_t>(sizeof(float));
}
// In the workspace of attention_grad, after numbers of rows and the mask; null where nobody asks for the gradient.
float* diagonals_of(const AttentionShape& a, const Call& call);
// ddistances (+)= sums over the batch and blocks of rows.
void launch_distance_gradient(cudaStream_t stream, const AttentionShape& a, int rows, const float* diagonals,
                              const Call& call);

}  // namespace cairn::kernels::cuda
