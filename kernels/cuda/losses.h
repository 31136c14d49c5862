// Losses row by row: every row's loss goes to the workspace, and one block adds them up in a fixed order.
#pragma once
#include "kernels/cuda/common/support.h"

namespace cairn::kernels::cuda {

struct Targets {
  const int32_t* targets = nullptr;
  const float* weights = nullptr;  // nullptr: 1
  int64_t classes = 0, ignore_index = -100;
  const double* dloss = nullptr;         // what gradients are multiplied by; nullptr: 1
  const float* class_weights = nullptr;  // nullptr: 1
  float smoothing = 0;                   // the share of a target that all classes have alike
  const float* means = nullptr;  // with label smoothing: the mean of each row of logits of this launch

  __device__ __forceinline__ float weight(int64_t row) const {
    const int32_t target = targets[row];
    if (target == ignore_index) return 0.0f;
    const float own = weights != nullptr ? weights[row] : 1.0f;
    return class_weights == nullptr || target < 0 || target >= classes ? own : own * class_weights[target];
  }
  __device__ __forceinline__ float scale() const {
    return dloss != nullptr ? static_cast<float>(*dloss) : 1.0f;
  }
};

// How rows of logits are launched; made when the kernel is made.
struct LossRows {
  DType x_dtype, d_dtype;
  int64_t ld_x, ld_d;  // elements from row to row
  bool vectors;
  int threads, kept;  // threads of a block; most vectors of a row that its shared memory holds
  int units,
      unit_pairs;  // units of a row (vocabulary/units.h); pairs of vectors that a thread reads of a unit
  int64_t blocks;  // blocks that run at the same time
};
// in_units: rows begin at multiples of 16 bytes, and are summed as their parts would be.
LossRows make_loss_rows(DType x_dtype, int64_t ld_x, DType d_dtype, int64_t ld_d, int64_t classes,
                        bool in_units);

// losses[first + r] = weight * cross entropy of row r of x; with `d`, also its gradient, which may lie where x lies.
void cross_entropy_rows(cudaStream_t stream, const LossRows& how, const void* x, void* d,
                        const Targets& targets, int64_t first, int64_t count, double* losses);

// means[r] = the mean of row r of x, rows `ld` elements apart: what a loss with smoothing needs before cross_entropy_rows.
void mean_rows(cudaStream_t stream, DType dtype, const void* x, int64_t ld, int64_t classes, int64_t count,
               float* means);

// hits[first + r] = kHit where the target of row r of x, rows `ld` elements apart, is one of the `top` largest, the first of equal
// numbers being the largest; kNone where the row does not count, else kMissed.
enum class Hit : char { kNone, kMissed, kHit };
void hit_rows(cudaStream_t stream, DType dtype, const void* x, int64_t ld, const Targets& targets,
              int64_t first, int64_t count, Hit* hits, int top = 1);

// How many of `rows` are hits, and how many count. Either may be nullptr.
void sum_hits(cudaStream_t stream, const Hit* of, int64_t rows, double* hits, double* count);

// *loss = sum of losses, *weight = sum of the rows' weights. Either may be nullptr.
void sum_cross_entropy(cudaStream_t stream, const Targets& targets, int64_t rows, const double* losses,
                       double* loss, double* weight);

inline constexpr size_t kLeftOut = 32;  // an operand that no call has

// Threads of the block that adds up so many.
inline constexpr int kSumThreads = 1024;  // at most
inline int sum_threads(int64_t items) {
  return static_cast<int>(items < kSumThreads ? (items + kWarp - 1) / kWarp * kWarp : kSumThreads);
}

// Where a call's targets, weights and scalars stand.
inline Targets targets_of(const Call& call, size_t targets, int64_t classes, int64_t ignore_index,
                          size_t dloss, size_t class_weights = kLeftOut) {
  return {input<const int32_t>(call, targets), input<const float>(call, targets + 1),  classes, ignore_index,
          input<const double>(call, dloss),    input<const float>(call, class_weights)};
}

}  // namespace cairn::kernels::cuda
