// Attention of one row of q per sequence, as where text is made token by token: keys are taken in chunks at fixed places,
// a block for each chunk of a key head, and the chunks' results are put together in order.
#include <cmath>

#include "kernels/cuda/attention/mask.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kChunk = 256;  // keys
constexpr int kThreads = 128, kWarps = kThreads / kWarp;

struct Chunks {
  int count;          // of a sequence
  float *lse, *sums;  // [batch, heads, count], and of each [dim]
};

// Of kChunk scores, which every warp reads.
__device__ __forceinline__ float chunk_max(const float* scores, int count) {
  float most = -INFINITY;
  for (int s = static_cast<int>(threadIdx.x) % kWarp; s < count; s += kWarp) most = fmaxf(most, scores[s]);
  for (int by = kWarp / 2; by > 0; by /= 2) most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, by));
  return most;
}
__device__ __forceinline__ float chunk_sum(const float* scores, int count, float largest) {
  float sum = 0;
  for (int s = static_cast<int>(threadIdx.x) % kWarp; s < count; s += kWarp) sum += expf(scores[s] - largest);
  return warp_sum(sum);
}

template <class T>
__global__ __launch_bounds__(kThreads) void decode_chunks(AttentionShape a, AttentionMask mask, const T* q,
                                                          const T* k, const T* v, Chunks to) {
  CAIRN_SHARED float scores[kChunk];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const int chunk = static_cast<int>(blockIdx.x) % to.count, head = static_cast<int>(blockIdx.x) / to.count,
            g = head % a.kv_heads, b = head / a.kv_heads;
  const Run seen = Sight(a, mask, b).keys(a, 0);
  const int begin = seen.begin > chunk * kChunk ? seen.begin : chunk * kChunk,
            end = seen.end < (chunk + 1) * kChunk ? seen.end : (chunk + 1) * kChunk, count = end - begin;
  k += a.kv_at(b, g, begin);
  v += a.kv_at(b, g, begin);
  for (int h = g * a.group(); h < (g + 1) * a.group(); ++h) {
    const int64_t place = (static_cast<int64_t>(b) * a.heads + h) * to.count + chunk;
    if (count <= 0) {
      if (thread == 0) to.lse[place] = -INFINITY;
      continue;
    }
    const T* own = q + a.q_at(b, h, 0);
    for (int s = warp; s < count; s += kWarps) {
      const T* row = k + static_cast<int64_t>(s) * a.kv_ld;
      float dot = 0, slope;
      for (int d = lane; d < a.dim; d += kWarp) dot += load(own + d) * load(row + d);
      dot = warp_sum(dot);
      if (lane == 0) scores[s] = capped(a, dot * a.scale, slope);
    }
    __syncthreads();
    const float largest = chunk_max(scores, count), sum = chunk_sum(scores, count, largest);
    __syncthreads();
    for (int s = thread; s < count; s += kThreads) scores[s] = expf(scores[s] - largest) / sum;
    __syncthreads();
    for (int d = thread; d < a.dim; d += kThreads) {
      float y = 0;
      for (int s = 0; s < count; ++s) y += scores[s] * load(v + static_cast<int64_t>(s) * a.kv_ld + d);
      to.sums[place * a.dim + d] = y;
    }
    if (thread == 0) to.lse[place] = largest + logf(sum);
    __syncthreads();
  }
}

// A block for each row: y and its log-sum-exp from those of its chunks.
template <class T>
__global__ __launch_bounds__(kThreads) void put_together(AttentionShape a, AttentionMask mask, Chunks from,
                                                         T* y, float* lse) {
  const int64_t row = blockIdx.x;
  const int h = static_cast<int>(row % a.heads), b = static_cast<int>(row / a.heads);
  const float* own = from.lse + row * from.count;
  float largest = -INFINITY, sum = 0;
  for (int c = 0; c < from.count; ++c) largest = fmaxf(largest, own[c]);
  if (largest > -INFINITY)
    for (int c = 0; c < from.count; ++c) sum += expf(own[c] - largest);
  float factor;
  const float all = finish_row(sum, largest, mask.sinks == nullptr ? nullptr : mask.sinks + h, factor);
  if (lse != nullptr && threadIdx.x == 0) lse[row] = all;
  for (int d = static_cast<int>(threadIdx.x); d < a.dim; d += kThreads) {
    float value = 0;
    for (int c = 0; c < from.count; ++c)
      if (own[c] > -INFINITY) value += expf(own[c] - largest) * from.sums[(row * from.count + c) * a.dim + d];
    store(y + a.y_at(b, h, 0) + d, value * factor);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_attention_decode(const Signature& s) {
  const auto shape = attention_shape(s, 0);
  if (!shape || shape->length != 1 || shape->keys == 1 || shape->added) return nullptr;
  const AttentionShape a = *shape;
  const int count = (a.keys - 1) / kChunk + 1;
  const int64_t rows = int64_t{a.batch} * a.heads,
                bytes = rows * count * (1 + a.dim) * static_cast<int64_t>(sizeof(float));
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          const cudaStream_t stream = stream_of(call);
          const Heads<const T> in = heads_of<const T>(call.in, 0, a);
          auto* lse = static_cast<float*>(call.workspace);
          const Chunks chunks{count, lse, lse + rows * count};
          const AttentionMask mask = mask_operands(a, call);
          launch(stream, decode_chunks<T>,
                 {.blocks = int64_t{a.batch} * a.kv_heads * count, .threads = kThreads}, a, mask, in.q, in.k,
                 in.v, chunks);
          launch(stream, put_together<T>, {.blocks = rows, .threads = kThreads}, a, mask, chunks,
                 output<T>(call, 0), output<float>(call, 1));
        },
        bytes);
  });
}

}  // namespace cairn::kernels::cuda
