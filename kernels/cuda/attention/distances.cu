#include "kernels/cuda/attention/distances.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/relative_buckets.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

int64_t blocks_of(int64_t count) { return (count - 1) / kThreads + 1; }

__device__ __forceinline__ int64_t own_number() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

// A thread for each distance of each head.
__global__ __launch_bounds__(kThreads) void distance_gradient(AttentionShape a, int rows,
                                                              const float* diagonals, float* to, bool adds) {
  const int count = a.length + a.keys - 1;
  const int64_t own = own_number();
  if (own >= static_cast<int64_t>(a.heads) * count) return;
  const int h = static_cast<int>(own / count), distance = static_cast<int>(own % count) - (a.length - 1);
  double sum = 0;
  for (int b = 0; b < a.batch; ++b)
    for (int first = 0; first < a.length; first += rows) {
      const int at = distance + first + rows - 1;
      if (at >= 0 && at < a.keys + rows - 1) sum += diagonals[diagonals_at(a, rows, b, h, first) + at];
    }
  to[own] = static_cast<float>(sum) + (adds ? to[own] : 0);
}

template <class T>
__global__ __launch_bounds__(kThreads) void relative_bias(CAIRN_TABLE(RelativeBuckets, buckets),
                                                          const T* table, int heads, int64_t queries,
                                                          int64_t count, float* to) {
  const int64_t own = own_number();
  if (own >= heads * count) return;
  to[own] = load(table + buckets(own % count - queries + 1) * heads + own / count);
}

// A thread for each bucket of each head, which adds what is the bucket's in order.
__global__ __launch_bounds__(kThreads) void relative_bias_grad(CAIRN_TABLE(RelativeBuckets, buckets),
                                                               const float* from, int heads, int64_t queries,
                                                               int64_t count, int64_t numbers, float* to,
                                                               bool adds) {
  const int64_t own = own_number();
  if (own >= numbers) return;
  const int64_t bucket = own / heads, h = own % heads;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    if (buckets(i - queries + 1) == bucket) sum += from[h * count + i];
  to[own] = static_cast<float>(sum) + (adds ? to[own] : 0);
}

}  // namespace

float* diagonals_of(const AttentionShape& a, const Call& call) {
  if (output<float>(call, 4) == nullptr) return nullptr;
  return reinterpret_cast<float*>(static_cast<char*>(call.workspace) + RowNumbers::bytes(a) + mask_bytes(a));
}

void launch_distance_gradient(cudaStream_t stream, const AttentionShape& a, int rows, const float* diagonals,
                              const Call& call) {
  if (diagonals == nullptr) return;
  const int64_t count = int64_t{a.heads} * (a.length + a.keys - 1);
  launch(stream, distance_gradient, {.blocks = blocks_of(count), .threads = kThreads}, a, rows, diagonals,
         output<float>(call, 4), accumulates(call, 4));
}

std::unique_ptr<Kernel> make_relative_bias(const Signature& s) {
  if (!fast_float(s.in[0]) || s.in[0].packed_bytes != 0) return nullptr;
  const int64_t queries = s.attrs->integer("queries"), count = queries + s.attrs->integer("keys") - 1;
  const int heads = static_cast<int>(s.in[0].shape[1]);
  const RelativeBuckets buckets(*s.attrs, s.in[0].shape[0]);
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), relative_bias<T>, {.blocks = blocks_of(heads * count), .threads = kThreads},
             buckets, input<const T>(call, 0), heads, queries, count, output<float>(call, 0));
    });
  });
}

std::unique_ptr<Kernel> make_relative_bias_grad(const Signature& s) {
  if (!plain_f32(s.in[0])) return nullptr;
  const int64_t queries = s.attrs->integer("queries"), count = queries + s.attrs->integer("keys") - 1;
  const int64_t numbers = s.attrs->integer("buckets") * s.in[0].shape[0];
  const int heads = static_cast<int>(s.in[0].shape[0]);
  const RelativeBuckets buckets(*s.attrs, s.attrs->integer("buckets"));
  return make_kernel([=](const Call& call) {
    launch(stream_of(call), relative_bias_grad, {.blocks = blocks_of(numbers), .threads = kThreads}, buckets,
           input<const float>(call, 0), heads, queries, count, numbers, output<float>(call, 0),
           accumulates(call, 0));
  });
}

}  // namespace cairn::kernels::cuda
