#include <algorithm>

#include "kernels/cuda/products/columns.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kLoads = 8;     // of a thread, all under way at once
constexpr int kResident = 4;  // blocks of a multiprocessor: all run at once, so that no wave is partly full

// Columns kFirst..kFirst + kCount of a row: one access.
template <int kCount, class T>
__device__ __forceinline__ void load_some(const T* p, T (&to)[kCount]) {
  if constexpr (kCount == 1) {
    to[0] = *p;
  } else {
    const Vector<T> whole = load_vector(p);
    for (int i = 0; i < kCount; ++i) to[i] = whole.at[i];
  }
}

// A lane owns `kCount` neighbouring columns, a warp every eighth row of the block's part. The first `longer` parts
// have part_rows + 1 rows, the others part_rows.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads, kResident)
    column_partials(const T* x, int64_t columns, int64_t part_rows, int64_t longer, float* partial) {
  alignas(16) CAIRN_SHARED float shared[kWarps][kWarp * kCount];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kWarp * kCount), column = first + lane * kCount;
  const int64_t part = blockIdx.y, begin = part * part_rows + (part < longer ? part : longer);
  const int64_t end = begin + part_rows + (part < longer ? 1 : 0);
  float sums[kCount] = {};
  if (column < columns) {
    const T* from = x + (begin + warp) * columns + column;
    const int64_t step = kWarps * columns;
    for (int64_t left = end - begin - warp; left > 0; left -= kLoads * kWarps, from += kLoads * step) {
      T in[kLoads][kCount];
      CAIRN_UNROLL for (int u = 0; u < kLoads; ++u) {
        for (int i = 0; i < kCount; ++i) in[u][i] = T{};
        if (u * kWarps < left) load_some(from + u * step, in[u]);
      }
      CAIRN_UNROLL for (int u = 0; u < kLoads; ++u) for (int i = 0; i < kCount; ++i) sums[i] +=
          load(&in[u][i]);
    }
  }
  if constexpr (kCount % 4 == 0)
    for (int i = 0; i < kCount; i += 4)
      store_vector(&shared[warp][lane * kCount + i], {{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}});
  else
    shared[warp][lane] = sums[0];
  __syncthreads();
  const int own = static_cast<int>(threadIdx.x);
  if (own >= kWarp * kCount || first + own >= columns) return;
  float total = 0;
  for (int w = 0; w < kWarps; ++w) total += shared[w][own];
  partial[part * columns + first + own] = total;
}

constexpr int kPartThreads = 512, kPartWarps = kPartThreads / kWarp;
constexpr int kPartColumns = 16;  // of a block: few, for many blocks

// kPartColumns / kCount lanes share a part's columns, the others take the next parts; the loads of a few
// hundred parts are all under way at once. A block along y has a total of its own.
template <int kCount>
__global__ void __launch_bounds__(kPartThreads, 2)
    sum_parts(const float* all, int64_t parts, int64_t columns, int64_t stride, Total first, Total second) {
  CAIRN_SHARED float shared[kPartWarps][kPartColumns];
  constexpr int kLanes = kPartColumns / kCount, kSlots = kPartThreads / kLanes, kAhead = 6;
  const Total total = blockIdx.y == 0 ? first : second;
  const float* const partial = all + blockIdx.y * columns;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kLanes;
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * kPartColumns, column = tile + lane * kCount;
  float sums[kCount] = {};
  if (column < columns)
    for (int64_t p = thread / kLanes; p < parts; p += kAhead * kSlots) {
      float in[kAhead][kCount];
      CAIRN_UNROLL for (int u = 0; u < kAhead; ++u) {
        for (int i = 0; i < kCount; ++i) in[u][i] = 0;
        if (p + u * kSlots < parts) load_some(partial + (p + u * kSlots) * stride + column, in[u]);
      }
      CAIRN_UNROLL for (int u = 0; u < kAhead; ++u) for (int i = 0; i < kCount; ++i) sums[i] += in[u][i];
    }
  for (int by = kLanes; by < kWarp; by *= 2)
    for (int i = 0; i < kCount; ++i) sums[i] += __shfl_xor_sync(kAllLanes, sums[i], by);
  if (thread % kWarp < kLanes)
    for (int i = 0; i < kCount; ++i) shared[warp][lane * kCount + i] = sums[i];
  __syncthreads();
  if (thread >= kPartColumns || tile + thread >= columns) return;
  float sum = 0;
  for (int w = 0; w < kPartWarps; ++w) sum += shared[w][thread];
  float* const out = total.to + tile + thread;
  *out = total.add ? *out + sum : sum;
}

}  // namespace

void sum_partials(cudaStream_t stream, const float* partial, int64_t parts, int64_t columns, int64_t stride,
                  Total first, Total second) {
  if (first.to == nullptr) {
    first = second;
    second = {};
    partial += columns;
  }
  if (first.to == nullptr) return;
  const bool vectors = columns % 4 == 0 && stride % 4 == 0;
  launch(stream, vectors ? sum_parts<4> : sum_parts<1>,
         {.blocks = (columns + kPartColumns - 1) / kPartColumns,
          .threads = kPartThreads,
          .blocks_y = second.to != nullptr ? 2 : 1},
         partial, parts, columns, stride, first, second);
}

ColumnSums::ColumnSums(int64_t rows, int64_t columns, DType dtype)
    : rows_(rows), columns_(columns), dtype_(dtype), vectors_(vectors_fit(columns, dtype)) {
  const int64_t width = kWarp * (vectors_ ? 16 / dtype_bytes(dtype) : 1);
  constexpr int64_t kBlocks = kGridMultiprocessors * kResident, kLeastRows = 4 * kWarps;
  tiles_ = (columns + width - 1) / width;
  parts_ = std::max<int64_t>(1, std::min(kBlocks / tiles_, (rows + kLeastRows - 1) / kLeastRows));
}

void ColumnSums::run(cudaStream_t stream, const void* x, float* out, bool accumulate, void* workspace) const {
  auto* partial = static_cast<float*>(workspace);
  with_float(dtype_, [&](auto zero) {
    using T = decltype(zero);
    launch(stream, vectors_ ? column_partials<T, Vector<T>::kCount> : column_partials<T, 1>,
           {.blocks = tiles_, .threads = kThreads, .blocks_y = parts_}, static_cast<const T*>(x), columns_,
           rows_ / parts_, rows_ % parts_, partial);
  });
  sum_partials(stream, partial, parts_, columns_, columns_, {out, accumulate});
}

}  // namespace cairn::kernels::cuda
