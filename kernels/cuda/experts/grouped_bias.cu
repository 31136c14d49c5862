// What goes with grouped products: the gradient of the biases, which is sums over each expert's rows, and the rows of experts whose
// weights are in another part.
#include "kernels/cuda/experts/grouped.h"

namespace cairn::kernels::cuda {
namespace {

// A lane has a column, a warp every eighth row of the expert. Experts outside of [first, first + z.experts) get nothing.
template <class T>
__global__ void __launch_bounds__(kRowsThreads)
    sum_columns(const T* dy, const int32_t* starts, GroupedSizes z, int first, int columns, float* db,
                bool add) {
  CAIRN_SHARED float shared[kRowsOfBlock][kWarp];
  const int lane = lane_of_row(), warp = static_cast<int>(threadIdx.x) / kWarp;
  const int tiles = (columns - 1) / kWarp + 1, expert = static_cast<int>(blockIdx.x) / tiles;
  const int column = static_cast<int>(blockIdx.x) % tiles * kWarp + lane;
  const bool own = expert >= first && expert < first + z.experts;
  const experts::Rows rows = own ? experts::rows_of(starts, expert, z.rows) : experts::Rows{0, 0};
  float sum = 0;
  if (column < columns) {
    CAIRN_UNROLL_BY(8)
    for (int64_t r = rows.begin + warp; r < rows.end; r += kRowsOfBlock)
      sum += load(dy + r * columns + column);
  }
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  for (int w = 1; w < kRowsOfBlock; ++w) sum += shared[w][lane];
  float* const to = db + static_cast<int64_t>(expert) * columns + column;
  *to = add ? *to + sum : sum;
}

template <class T>
__global__ void __launch_bounds__(kRowsThreads)
    carry(const T* before, const int32_t* starts, GroupedSizes z, T* y) {
  const int64_t row = row_of_warp(), own = experts::rows_of(starts, 0, z.rows).begin,
                after = experts::rows_of(starts, z.experts - 1, z.rows).end;
  if (row >= z.rows || (row >= own && row < after)) return;
  for (int64_t i = row * z.outer + lane_of_row(); i < (row + 1) * z.outer; i += kWarp)
    y[i] = before != nullptr ? before[i] : T{};
}

}  // namespace

void carry_rows(const Call& call, const GroupedProduct& p) {
  const bool part = call.in[2].desc.shape[0] - 1 > p.sizes.experts;
  const auto before = static_cast<size_t>(p.before);
  if (!part || data_of(call.in, before) == data_of(call.out, 0)) return;
  with_float(call.out[0].desc.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch(stream_of(call), carry<T>, size_of_rows(p.sizes.rows), input<const T>(call, before),
           p.starts(call), p.sizes, output<T>(call, 0));
  });
}

void sum_columns_of_experts(const Call& call, const GroupedGradient& g) {
  if (data_of(call.out, 1) == nullptr) return;
  const int columns = static_cast<int>(call.in[1].desc.shape[1]);
  with_float(call.in[1].desc.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch(stream_of(call), sum_columns<T>,
           {.blocks = int64_t{(columns - 1) / kWarp + 1} * (call.in[2].desc.shape[0] - 1),
            .threads = kRowsThreads},
           input<const T>(call, 1), input<const int32_t>(call, 2), g.sizes, g.first, columns,
           output<float>(call, 1), accumulates(call, 1));
  });
}

}  // namespace cairn::kernels::cuda
