// Which keys a row of attention sees, on the device: what rows and keys say of each other, and which tiles meet at all. Kernels
// are compiled with masks and without: kMasked.
#pragma once
#include "kernels/cuda/attention/attention.h"

namespace cairn::kernels::cuda {

// Operands of a call, null where they are left out, and what is worked out of them: for every kMaskRows rows, the keys that
// these see, and for as many keys, the rows that see them, as [begin, end).
inline constexpr int kMaskRows = 64;
struct AttentionMask {
  const float *sinks = nullptr, *distances = nullptr;
  const int *sequences = nullptr, *lengths = nullptr, *position = nullptr;
  const int *keys_of_rows = nullptr, *rows_of_keys = nullptr;
};

// The operands alone.
AttentionMask mask_operands(const AttentionShape& a, const Call& call);
// Bytes of workspace for what is worked out; 0 where all rows see what `causal` says.
int64_t mask_bytes(const AttentionShape& a);
AttentionMask prepare_mask(cudaStream_t stream, const AttentionShape& a, const Call& call, void* workspace);
// dsinks[h] (+)= - sum over rows of p (dy . y), where p = exp(sink - lse) of the numbers in `rows`, which may be in units of
// log 2.
void launch_sink_gradient(cudaStream_t stream, const AttentionShape& a, const AttentionMask& mask,
                          const RowNumbers& rows, bool in_log2, const Call& call);

// ---- on the device

struct Run {
  int begin, end;
};
__device__ __forceinline__ Run run_of(const int* runs, int count, int b, int first, int rows) {
  const int blocks = (count - 1) / kMaskRows + 1;
  Run all = {count, 0};
  for (int i = first / kMaskRows; i < blocks && i * kMaskRows < first + rows; ++i) {
    const int* run = runs + 2 * (static_cast<int64_t>(b) * blocks + i);
    if (run[0] >= run[1]) continue;
    all.begin = all.begin < run[0] ? all.begin : run[0];
    all.end = all.end > run[1] ? all.end : run[1];
  }
  return all.begin < all.end ? all : Run{0, 0};
}

// What the rows of a sequence of the batch see.
struct Sight {
  int shift = 0, limit = 0;  // row t stands at t + shift among the keys, of which `limit` can be seen
  const int* ids = nullptr;  // of rows and keys

  __device__ __forceinline__ Sight() {}
  __device__ __forceinline__ Sight(const AttentionShape& a, const AttentionMask& mask, int b)
      : limit(a.keys) {
    constexpr int kFar = 1 << 30;
    if (mask.position != nullptr) {
      const int at = mask.position[b];
      shift = at < -kFar ? -kFar : at > kFar ? kFar : at;
    }
    if (mask.lengths != nullptr && mask.lengths[b] < limit) limit = mask.lengths[b];
    if (mask.sequences != nullptr) ids = mask.sequences + static_cast<int64_t>(b) * a.length;
  }
  // Without the numbers of sequences.
  __device__ __forceinline__ Run keys(const AttentionShape& a, int row) const {
    const int at = row + shift, begin = at + 1 - a.window, end = a.causal ? at + 1 : at + a.window;
    return {begin > 0 ? begin : 0, row >= a.length ? 0 : end < limit ? end : limit};
  }
  __device__ __forceinline__ bool sees(const AttentionShape& a, int row, int key) const {
    const Run run = keys(a, row);
    return key >= run.begin && key < run.end && (ids == nullptr || (ids[row] >= 0 && ids[row] == ids[key]));
  }
};

// A scaled score, less than the softcap; `slope`: how much it changes with what comes in.
__device__ __forceinline__ float capped(const AttentionShape& a, float score, float& slope) {
  if (a.softcap <= 0) return score;
  const float bent = tanhf(score / a.softcap);
  slope = 1 - bent * bent;
  return a.softcap * bent;
}

// What is added to the scaled product of a row and a key of a head.
__device__ __forceinline__ float added(const AttentionShape& a, const AttentionMask& mask, int h, int row,
                                       int key) {
  if (!a.added || row >= a.length || key >= a.keys) return 0;
  return mask.distances[static_cast<int64_t>(h) * (a.length + a.keys - 1) + key - row + a.length - 1];
}

// A product in whose place the scaled one is a score; `slope` as of capped().
__device__ __forceinline__ float bent(const AttentionShape& a, const AttentionMask& mask, int h, int row,
                                      int key, float product, float& slope) {
  if (a.softcap <= 0 && !a.added) return product;
  return capped(a, product * a.scale + added(a, mask, h, row, key), slope) / a.scale;
}

// The log-sum-exp of a row whose scores' exponentials, relative to `largest`, sum up to `sum`, and of its sink. factor: what
// the sums of values are multiplied by; 0 for a row that sees no key.
__device__ __forceinline__ float finish_row(float sum, float largest, const float* sink, float& factor) {
  factor = 0;
  if (sum == 0) return -INFINITY;
  const float most = sink != nullptr ? fmaxf(largest, *sink) : largest, grown = expf(largest - most);
  const float total = sum * grown + (sink != nullptr ? expf(*sink - most) : 0);
  factor = grown / total;
  return most + logf(total);
}

}  // namespace cairn::kernels::cuda
