#include "kernels/cuda/products/columns.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

// A lane owns `kCount` neighbouring columns, a warp every eighth row of the block's part.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    column_partials(const T* x, int64_t rows, int64_t columns, int64_t rows_per_part, float* partial) {
  CAIRN_SHARED float shared[kWarps * kWarp * kCount];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kWarp + lane) * kCount;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * rows_per_part;
  const int64_t end = begin + rows_per_part < rows ? begin + rows_per_part : rows;
  float sums[kCount];
  for (int i = 0; i < kCount; ++i) sums[i] = 0;
  if (column < columns) {
    const auto row = [&](int64_t r) {
      struct Row {
        T at[kCount];
      } v;
      if constexpr (kCount == 1) {
        v.at[0] = x[r * columns + column];
      } else {
        const Vector<T> whole = load_vector(x + r * columns + column);
        for (int i = 0; i < kCount; ++i) v.at[i] = whole.at[i];
      }
      return v;
    };
    int64_t r = begin + warp;
    for (; r + 3 * kWarps < end; r += 4 * kWarps) {
      const auto a = row(r), b = row(r + kWarps), c = row(r + 2 * kWarps), d = row(r + 3 * kWarps);
      for (int i = 0; i < kCount; ++i)
        sums[i] += (load(&a.at[i]) + load(&b.at[i])) + (load(&c.at[i]) + load(&d.at[i]));
    }
    for (; r < end; r += kWarps) {
      const auto a = row(r);
      for (int i = 0; i < kCount; ++i) sums[i] += load(&a.at[i]);
    }
  }
  for (int i = 0; i < kCount; ++i) shared[(warp * kCount + i) * kWarp + lane] = sums[i];
  __syncthreads();
  for (int at = static_cast<int>(threadIdx.x); at < kWarp * kCount; at += kThreads) {
    const int64_t to = static_cast<int64_t>(blockIdx.x) * kWarp * kCount + at;
    if (to >= columns) continue;
    float total = 0;
    for (int w = 0; w < kWarps; ++w) total += shared[(w * kCount + at % kCount) * kWarp + at / kCount];
    partial[blockIdx.y * columns + to] = total;
  }
}

// A lane owns a column, a warp every eighth part.
__global__ void __launch_bounds__(kThreads) sum_parts(const float* partial, int64_t parts, int64_t columns,
                                                      int64_t stride, float* out, bool accumulate) {
  CAIRN_SHARED float shared[kWarps][kWarp];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + lane;
  float sum = 0;
  if (column < columns) {
    int64_t p = warp;
    for (; p + 3 * kWarps < parts; p += 4 * kWarps) {
      const float a = partial[p * stride + column], b = partial[(p + kWarps) * stride + column],
                  c = partial[(p + 2 * kWarps) * stride + column],
                  d = partial[(p + 3 * kWarps) * stride + column];
      sum += (a + b) + (c + d);
    }
    for (; p < parts; p += kWarps) sum += partial[p * stride + column];
  }
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  float total = 0;
  for (int w = 0; w < kWarps; ++w) total += shared[w][lane];
  out[column] = accumulate ? out[column] + total : total;
}

}  // namespace

void sum_partials(cudaStream_t stream, const float* partial, int64_t parts, int64_t columns, int64_t stride,
                  float* out, bool accumulate) {
  launch(stream, sum_parts, {.blocks = (columns + kWarp - 1) / kWarp, .threads = kThreads}, partial, parts,
         columns, stride, out, accumulate);
}

ColumnSums::ColumnSums(int64_t rows, int64_t columns, DType dtype)
    : rows_(rows), columns_(columns), dtype_(dtype), vectors_(vectors_fit(columns, dtype)) {
  const int64_t width = kWarp * (vectors_ ? 16 / dtype_bytes(dtype) : 1);
  tiles_ = (columns + width - 1) / width;
  parts_ = row_parts(rows, tiles_, 4 * kWarps);
  rows_per_part_ = (rows + parts_ - 1) / parts_;
  parts_ = (rows + rows_per_part_ - 1) / rows_per_part_;
}

void ColumnSums::run(cudaStream_t stream, const void* x, float* out, bool accumulate, void* workspace) const {
  auto* partial = static_cast<float*>(workspace);
  with_float(dtype_, [&](auto zero) {
    using T = decltype(zero);
    launch(stream, vectors_ ? column_partials<T, Vector<T>::kCount> : column_partials<T, 1>,
           {.blocks = tiles_, .threads = kThreads, .blocks_y = parts_}, static_cast<const T*>(x), rows_,
           columns_, rows_per_part_, partial);
  });
  sum_partials(stream, partial, parts_, columns_, columns_, out, accumulate);
}

}  // namespace cairn::kernels::cuda
