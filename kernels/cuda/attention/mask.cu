#include "kernels/cuda/attention/mask.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

int blocks_of(int count) { return (count - 1) / kMaskRows + 1; }

// From each thread's run to that of all.
__device__ Run union_of(Run own, int* scratch) {
  __syncthreads();
  scratch[2 * threadIdx.x] = own.begin;
  scratch[2 * threadIdx.x + 1] = own.end;
  __syncthreads();
  Run all = own;
  for (int i = 0; i < kThreads; ++i) {
    all.begin = scratch[2 * i] < all.begin ? scratch[2 * i] : all.begin;
    all.end = scratch[2 * i + 1] > all.end ? scratch[2 * i + 1] : all.end;
  }
  return all;
}
constexpr int kNone = 0x7fffffff;
__device__ __forceinline__ void take(Run& run, int at) {
  run.begin = at < run.begin ? at : run.begin;
  run.end = at + 1 > run.end ? at + 1 : run.end;
}

// A block of kMaskRows rows, or, after all of these of a sequence, of keys. Samples lie one after the other, as a rule: those
// whose numbers are smaller or larger than all of the block are left out.
__global__ __launch_bounds__(kThreads) void mask_runs(AttentionShape a, AttentionMask mask, int row_blocks,
                                                      int key_blocks, int* keys_of_rows, int* rows_of_keys) {
  CAIRN_SHARED int scratch[2 * kThreads];
  const int b = static_cast<int>(blockIdx.x) / (row_blocks + key_blocks),
            block = static_cast<int>(blockIdx.x) % (row_blocks + key_blocks),
            thread = static_cast<int>(threadIdx.x);
  const Sight sight(a, mask, b);
  const bool of_rows = block < row_blocks;
  const int own = (of_rows ? block : block - row_blocks) * kMaskRows + thread;
  Run seen = {kNone, 0}, numbers = {kNone, 0};
  if (of_rows && thread < kMaskRows && own < a.length) {
    const Run keys = sight.keys(a, own);
    const bool any = keys.begin < keys.end && (sight.ids == nullptr || sight.ids[own] >= 0);
    if (any) seen = keys;
    if (any && sight.ids != nullptr) take(numbers, sight.ids[own]);
  }
  if (!of_rows && thread < kMaskRows && own < sight.limit) {
    const bool any = sight.ids == nullptr || sight.ids[own] >= 0;
    if (any) take(seen, own);
    if (any && sight.ids != nullptr) take(numbers, sight.ids[own]);
  }
  seen = union_of(seen, scratch);
  if (sight.ids != nullptr) numbers = union_of(numbers, scratch);
  const auto meets = [&](int at) {
    return sight.ids == nullptr || (sight.ids[at] >= numbers.begin && sight.ids[at] < numbers.end);
  };
  Run met = {kNone, 0};
  if (of_rows && sight.ids == nullptr) met = seen;
  if (of_rows && sight.ids != nullptr && seen.begin < seen.end)
    for (int key = seen.begin + thread; key < seen.end; key += kThreads)
      if (meets(key)) take(met, key);
  if (!of_rows && seen.begin < seen.end)
    for (int row = thread; row < a.length; row += kThreads) {
      const Run keys = sight.keys(a, row);
      if (keys.begin < seen.end && keys.end > seen.begin && keys.begin < keys.end && meets(row))
        take(met, row);
    }
  met = union_of(met, scratch);
  if (thread != 0) return;
  int* to = of_rows ? keys_of_rows + 2 * (static_cast<int64_t>(b) * row_blocks + block)
                    : rows_of_keys + 2 * (static_cast<int64_t>(b) * key_blocks + block - row_blocks);
  to[0] = met.begin < met.end ? met.begin : 0;
  to[1] = met.begin < met.end ? met.end : 0;
}

// A block for each head; a thread's rows in order, then those of all threads.
__global__ __launch_bounds__(kThreads) void sink_gradient(AttentionShape a, const float* sinks,
                                                          const float* lse, const float* delta,
                                                          int64_t padded, float factor, bool in_log2,
                                                          float* to, bool adds) {
  CAIRN_SHARED double scratch[kThreads];
  const int h = static_cast<int>(blockIdx.x);
  const float sink = factor * sinks[h];
  double sum = 0;
  for (int b = 0; b < a.batch; ++b) {
    const int64_t head = (static_cast<int64_t>(b) * a.heads + h) * padded;
    for (int row = static_cast<int>(threadIdx.x); row < a.length; row += kThreads) {
      const float above = sink - lse[head + row];
      // A row that sees no key has no sink either.
      if (lse[head + row] != -INFINITY)
        sum -= static_cast<double>(in_log2 ? exp2f(above) : expf(above)) * delta[head + row];
    }
  }
  scratch[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kThreads; ++i) sum += scratch[i];
  to[h] = static_cast<float>(sum) + (adds ? to[h] : 0);
}

}  // namespace

int64_t mask_bytes(const AttentionShape& a) {
  if (!a.masked) return 0;
  return int64_t{2} * a.batch * (blocks_of(a.length) + blocks_of(a.keys)) * static_cast<int64_t>(sizeof(int));
}

AttentionMask mask_operands(const AttentionShape& a, const Call& call) {
  const auto first = static_cast<size_t>(a.sinks);
  return {.sinks = input<const float>(call, first),
          .distances = input<const float>(call, first + 4),
          .sequences = input<const int>(call, first + 1),
          .lengths = input<const int>(call, first + 2),
          .position = input<const int>(call, first + 3)};
}

AttentionMask prepare_mask(cudaStream_t stream, const AttentionShape& a, const Call& call, void* workspace) {
  if (!a.masked) return {};
  AttentionMask mask = mask_operands(a, call);
  const int rows = blocks_of(a.length), keys = blocks_of(a.keys);
  int *of_rows = static_cast<int*>(workspace), *of_keys = of_rows + int64_t{2} * a.batch * rows;
  launch(stream, mask_runs, {.blocks = int64_t{a.batch} * (rows + keys), .threads = kThreads}, a, mask, rows,
         keys, of_rows, of_keys);
  mask.keys_of_rows = of_rows;
  mask.rows_of_keys = of_keys;
  return mask;
}

void launch_sink_gradient(cudaStream_t stream, const AttentionShape& a, const AttentionMask& mask,
                          const RowNumbers& rows, bool in_log2, const Call& call) {
  float* to = output<float>(call, 3);
  if (to == nullptr || mask.sinks == nullptr) return;
  launch(stream, sink_gradient, {.blocks = a.heads, .threads = kThreads}, a, mask.sinks, rows.lse, rows.delta,
         rows.padded, in_log2 ? kLog2E : 1.0f, in_log2, to, accumulates(call, 3));
}

}  // namespace cairn::kernels::cuda
