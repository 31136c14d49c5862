// What the attention kernels share: where heads lie, and the numbers of each row that the gradient needs.
#pragma once
#include <optional>

#include "kernels/cuda/attention/library.h"
#include "kernels/cuda/common/support.h"

namespace cairn::kernels::cuda {

inline constexpr float kLog2E = 1.4426950408889634f;

// Heads are packed or not only for the host: kernels get pointers to the first head of q, k and v.
struct AttentionShape : AttentionSizes {
  int keys;       // rows of k and v
  int window;     // as large as any distance where there is none
  float softcap;  // 0: there is none
  bool masked;    // there is more to say of what rows see than `causal` does
  bool added;     // there are distances, what is added to scores by them
  int sinks;      // the operand; sequences, lengths, position and distances follow it

  __host__ __device__ int group() const { return heads / kv_heads; }
  __host__ __device__ int64_t q_at(int b, int h, int t) const {
    return (static_cast<int64_t>(b) * length + t) * q_ld + static_cast<int64_t>(h) * dim;
  }
  __host__ __device__ int64_t kv_at(int b, int g, int t) const {
    return (static_cast<int64_t>(b) * keys + t) * kv_ld + static_cast<int64_t>(g) * dim;
  }
  __host__ __device__ int64_t y_at(int b, int h, int t) const {
    return (static_cast<int64_t>(b) * length + t) * y_ld + static_cast<int64_t>(h) * dim;
  }
  __host__ __device__ int64_t row_at(int b, int h, int t) const {  // lse
    return (static_cast<int64_t>(b) * heads + h) * length + t;
  }
  int64_t blocks(int64_t rows, int64_t of_heads) const {
    return (length + rows - 1) / rows * of_heads * batch;
  }
  int64_t key_blocks(int64_t rows, int64_t of_heads) const {
    return (keys + rows - 1) / rows * of_heads * batch;
  }
};

// From the signature of attention (first = 0) or attention_grad (first = 1: q is operand 1); nothing if an
// operand is of a type that these kernels do not take.
std::optional<AttentionShape> attention_shape(const Signature& s, size_t first);

// q, k, v (operands, or gradients of the same layout); null if left out.
template <class T>
struct Heads {
  T *q, *k, *v;
};
template <class T>
Heads<T> heads_of(std::span<const Tensor> tensors, size_t first, const AttentionShape& a) {
  auto* q = static_cast<T*>(data_of(tensors, first));
  if (a.packed) return {q, q + a.heads * a.dim, q + (a.heads + a.kv_heads) * a.dim};
  return {q, static_cast<T*>(data_of(tensors, first + 1)), static_cast<T*>(data_of(tensors, first + 2))};
}

// What is known of each row of scores before the gradient begins: factor * lse, and delta = dy . y. Rows of a
// head are followed by zeros up to a multiple of kRowPadding.
inline constexpr int kRowPadding = 64;
struct RowNumbers {
  float *lse, *delta;  // [batch * heads][padded]
  int64_t padded;

  RowNumbers(void* workspace, const AttentionShape& a);
  static int64_t bytes(const AttentionShape& a);
};
void launch_row_numbers(cudaStream_t stream, const AttentionShape& a, DType dtype, const void* dy,
                        const void* y, const float* lse, float factor, const RowNumbers& to);

}  // namespace cairn::kernels::cuda
