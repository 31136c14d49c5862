// Attention for every shape, in float32 arithmetic: tiles of 64 queries by 64 keys, 4 x 4 numbers to a
// thread, the softmax kept up to date tile by tile (Milakov and Gimelshein, 2018; Dao et al., 2022). A block
// makes at most 128 columns of its output; wider heads take several blocks, each of which computes the scores
// again.
#include <cmath>

#include "kernels/cuda/attention/distances.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kTile = 64;   // queries, keys and columns
constexpr int kDepth = 32;  // columns of two operands that are multiplied at a time
constexpr int kThreads = 256;
constexpr int kSlots = kTile * kTile / 4;  // float4 of one tile

// Thread (ty, tx) owns rows 4 ty.. and columns 4 tx.. of a tile.
__device__ __forceinline__ int own_row() { return static_cast<int>(threadIdx.x) / 16 * 4; }
__device__ __forceinline__ int own_column() { return static_cast<int>(threadIdx.x) % 16 * 4; }

// Where four columns of a row lie in a tile; `turned` tiles are written by columns without bank conflicts.
template <bool kTurned>
__device__ __forceinline__ int slot(int row, int column) {
  return row * (kTile / 4) + (kTurned ? (column / 4) ^ (row / 4 % 16) : column / 4);
}

// acc[i][j] += sum over rows d of a[d][own_row + i] * b[d][own_column + j]
template <bool kTurned>
__device__ __forceinline__ void multiply(float (&acc)[4][4], const float4* a, const float4* b, int rows) {
  const int row = own_row(), column = own_column();
  CAIRN_UNROLL_BY(2)
  for (int d = 0; d < rows; ++d) {
    const float4 u = a[slot<kTurned>(d, row)], v = b[slot<false>(d, column)];
    const float left[4] = {u.x, u.y, u.z, u.w}, right[4] = {v.x, v.y, v.z, v.w};
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) acc[i][j] += left[i] * right[j];
  }
}

// to[d][row] = x[row][first + d] for kDepth columns; zeros outside.
template <class T>
__device__ __forceinline__ void stage_columns(const T* x, int ld, int rows, int first, int dim, float4* to) {
  constexpr int kEach = kDepth / (kThreads / kTile);
  const int row = static_cast<int>(threadIdx.x) % kTile, d = static_cast<int>(threadIdx.x) / kTile * kEach;
  float* out = reinterpret_cast<float*>(to);
  for (int i = d; i < d + kEach; ++i)
    out[i * kTile + row] =
        row < rows && first + i < dim ? load(x + static_cast<int64_t>(row) * ld + first + i) : 0;
}

// to[row][c] = x[row][first + c] for kTile columns; zeros outside.
template <class T>
__device__ __forceinline__ void stage_rows(const T* x, int ld, int rows, int first, int dim, float4* to) {
  const int column = static_cast<int>(threadIdx.x) % kTile;
  float* out = reinterpret_cast<float*>(to);
  for (int row = static_cast<int>(threadIdx.x) / kTile; row < kTile; row += kThreads / kTile)
    out[row * kTile + column] =
        row < rows && first + column < dim ? load(x + static_cast<int64_t>(row) * ld + first + column) : 0;
}

// acc = x y^T, of 64 rows each
template <class T>
__device__ __forceinline__ void dot_rows(float (&acc)[4][4], const T* x, int x_ld, int x_rows, const T* y,
                                         int y_ld, int y_rows, int dim, float4* stage) {
  float4* const other = stage + kSlots / 2;
  for (auto& row : acc)
    for (float& v : row) v = 0;
  for (int first = 0; first < dim; first += kDepth) {
    __syncthreads();
    stage_columns(x, x_ld, x_rows, first, dim, stage);
    stage_columns(y, y_ld, y_rows, first, dim, other);
    __syncthreads();
    multiply<false>(acc, stage, other, dim - first < kDepth ? dim - first : kDepth);
  }
}

// acc[slice] += a^T x, of the first `rows` rows, for columns first + 64 slice..
template <int kSlices, bool kTurned, class T>
__device__ __forceinline__ void add_product(float (&acc)[kSlices][4][4], const float4* a, const T* x, int ld,
                                            int rows, int first, int dim, float4* stage) {
  for (int c = 0; c < kSlices; ++c) {
    __syncthreads();
    stage_rows(x, ld, rows, first + c * kTile, dim, stage);
    __syncthreads();
    multiply<kTurned>(acc[c], a, stage, rows < kTile ? rows : kTile);
  }
}

template <int kSlices, class T>
__device__ __forceinline__ void store_rows(const float (&acc)[kSlices][4][4], const float (&factor)[4], T* x,
                                           int ld, int rows, int first, int dim) {
  for (int i = 0; i < 4; ++i) {
    const int row = own_row() + i;
    if (row >= rows) return;
    for (int c = 0; c < kSlices; ++c)
      for (int j = 0; j < 4; ++j) {
        const int column = first + c * kTile + own_column() + j;
        if (column < dim) store(x + static_cast<int64_t>(row) * ld + column, acc[c][i][j] * factor[i]);
      }
  }
}

// By columns: to[column][row], turned.
__device__ __forceinline__ void put_turned(const float (&v)[4][4], float4* to) {
  for (int j = 0; j < 4; ++j)
    to[slot<true>(own_column() + j, own_row())] = make_float4(v[0][j], v[1][j], v[2][j], v[3][j]);
}
__device__ __forceinline__ void put(const float (&v)[4][4], float4* to) {
  for (int i = 0; i < 4; ++i)
    to[slot<false>(own_row() + i, own_column())] = make_float4(v[i][0], v[i][1], v[i][2], v[i][3]);
}

// Which tile of which head a block has. Causal tiles with more to do come first.
struct Place {
  int b, h, first, column;

  __device__ Place(int length, int heads, int slices, bool late_first) {
    const int tiles = (length - 1) / kTile + 1;
    int64_t i = blockIdx.x;
    column = static_cast<int>(i % slices);
    i /= slices;
    const int tile = static_cast<int>(i % tiles);
    first = (late_first ? tiles - 1 - tile : tile) * kTile;
    i /= tiles;
    h = static_cast<int>(i % heads);
    b = static_cast<int>(i / heads);
  }
};

// Keys that the 64 queries from here see; the first ones are at a full tile.
template <bool kMasked>
__device__ __forceinline__ Run keys_seen(const AttentionShape& a, const AttentionMask& mask, int b,
                                         int query) {
  if constexpr (kMasked) {
    const Run run = run_of(mask.keys_of_rows, a.length, b, query, kTile);
    return {run.begin / kTile * kTile, run.end};
  }
  return {0, a.causal && query + kTile < a.length ? query + kTile : a.length};
}
template <bool kMasked>
__device__ __forceinline__ bool visible(const AttentionShape& a, const Sight& sight, int query, int key) {
  if constexpr (kMasked) return sight.sees(a, query, key);
  return key < a.length && query < a.length && (!a.causal || key <= query);
}
template <bool kMasked>
__device__ __forceinline__ Sight sight_of(const AttentionShape& a, const AttentionMask& mask, int b) {
  if constexpr (kMasked) return Sight(a, mask, b);
  return Sight();
}

template <class T, int kSlices, bool kMasked>
__global__ __launch_bounds__(kThreads, kSlices == 1 ? 2 : 1) void attention(AttentionShape a,
                                                                            AttentionMask mask, const T* q,
                                                                            const T* k, const T* v, T* y,
                                                                            float* lse, int slices) {
  CAIRN_SHARED float4 stage[kSlots];
  CAIRN_SHARED float4 weights[kSlots];
  const Place at(a.length, a.heads, slices, a.causal);
  const Sight sight = sight_of<kMasked>(a, mask, at.b);
  const Run run = keys_seen<kMasked>(a, mask, at.b, at.first);
  const int g = at.h / a.group(), rows = a.length - at.first, seen = run.end;
  const int column = at.column * kSlices * kTile;
  q += a.q_at(at.b, at.h, at.first);
  float out[kSlices][4][4] = {}, largest[4], sum[4] = {};
  for (float& m : largest) m = -INFINITY;
  for (int key = run.begin; key < seen; key += kTile) {
    const int64_t to_key = a.kv_at(at.b, g, key);
    const int keys = seen - key;
    float s[4][4];
    dot_rows(s, q, a.q_ld, rows, k + to_key, a.kv_ld, keys, a.dim, stage);
    for (int i = 0; i < 4; ++i) {
      float most = largest[i];
      for (int j = 0; j < 4; ++j) {
        const bool seen_here = visible<kMasked>(a, sight, at.first + own_row() + i, key + own_column() + j);
        if constexpr (kMasked) {
          float slope;
          s[i][j] = bent(a, mask, at.h, at.first + own_row() + i, key + own_column() + j, s[i][j], slope);
        }
        if (!seen_here) s[i][j] = -INFINITY;
        most = fmaxf(most, s[i][j]);
      }
      for (int by = 8; by > 0; by /= 2) most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, by));
      const float shift = most == -INFINITY ? 0 : most;  // of a row that has seen no key yet
      const float shrink = expf((largest[i] - shift) * a.scale);
      largest[i] = most;
      sum[i] *= shrink;
      for (int j = 0; j < 4; ++j) {
        s[i][j] = expf((s[i][j] - shift) * a.scale);
        sum[i] += s[i][j];
        for (int c = 0; c < kSlices; ++c) out[c][i][j] *= shrink;
      }
    }
    put_turned(s, weights);
    add_product<kSlices, true>(out, weights, v + to_key, a.kv_ld, keys, column, a.dim, stage);
  }
  float inverse[4];
  for (int i = 0; i < 4; ++i) {
    for (int by = 8; by > 0; by /= 2) sum[i] += __shfl_xor_sync(kAllLanes, sum[i], by);
    inverse[i] = 1.0f / sum[i];
    float row_lse = largest[i] * a.scale + logf(sum[i]);
    if constexpr (kMasked) {
      const float* sink = mask.sinks == nullptr ? nullptr : mask.sinks + at.h;
      row_lse = finish_row(sum[i], largest[i] * a.scale, sink, inverse[i]);
    }
    const int row = own_row() + i;
    if (lse != nullptr && at.column == 0 && own_column() == 0 && row < rows)
      lse[a.row_at(at.b, at.h, at.first + row)] = row_lse;
  }
  store_rows<kSlices>(out, inverse, y + a.y_at(at.b, at.h, at.first), a.y_ld, rows, column, a.dim);
}

// diagonals[key + column - row + 63] += a turned tile's numbers of rows and columns so far apart, a thread for each.
__device__ __forceinline__ void add_diagonals(const float4* tile, float* diagonals, int key, int count) {
  const auto* numbers = reinterpret_cast<const float*>(tile);
  const int own = static_cast<int>(threadIdx.x), apart = own - (kTile - 1);
  if (own >= 2 * kTile - 1 || key + own >= count) return;
  float sum = 0;
  for (int row = apart < 0 ? -apart : 0; row < kTile && row + apart < kTile; ++row)
    sum += numbers[4 * slot<true>(row + apart, row) + row % 4];
  diagonals[key + own] += sum;
}

// s = p = exp(scale s - lse), dp = ds = p (dp - delta), for 64 queries and 64 keys of head h.
template <bool kMasked>
__device__ __forceinline__ void score_gradients(const AttentionShape& a, const Sight& sight,
                                                const AttentionMask& mask, int h, int query, int key,
                                                const float* lse, const float* delta, float (&s)[4][4],
                                                float (&dp)[4][4]) {
  for (int i = 0; i < 4; ++i) {
    const int row = query + own_row() + i;
    const float row_lse = row < a.length ? lse[row] : 0, row_delta = row < a.length ? delta[row] : 0;
    // A softmax of one element is constant; rounding in delta must not give it a gradient.
    bool constant = a.length == 1 || (a.causal && row == 0);
    if constexpr (kMasked) {
      const Run run = sight.keys(a, row);
      constant = mask.sinks == nullptr && run.end - run.begin == 1;
    }
    for (int j = 0; j < 4; ++j) {
      const bool seen = visible<kMasked>(a, sight, row, key + own_column() + j);
      float score = s[i][j] * a.scale;
      if constexpr (kMasked) {
        float slope = 1;
        score = capped(a, score + added(a, mask, h, row, key + own_column() + j), slope);
        s[i][j] = seen ? expf(score - row_lse) : 0;
        dp[i][j] = seen && !constant ? s[i][j] * (dp[i][j] - row_delta) * slope : 0;
      } else {
        s[i][j] = seen ? expf(score - row_lse) : 0;
        dp[i][j] = seen && !constant ? s[i][j] * (dp[i][j] - row_delta) : 0;
      }
    }
  }
}

// dk and dv of 64 keys, over all queries of the group that see them.
template <class T, int kSlices, bool kMasked>
__global__ __launch_bounds__(kThreads, kSlices == 1 ? 2 : 1) void grad_keys(
    AttentionShape a, AttentionMask mask, const T* dy, const T* q, const T* k, const T* v, const float* lse,
    const float* delta, int64_t padded, T* dk, T* dv, int slices) {
  CAIRN_SHARED float4 stage[kSlots];
  CAIRN_SHARED float4 p[kSlots];
  CAIRN_SHARED float4 ds[kSlots];
  const Place at(a.keys, a.kv_heads, slices, false);
  const Sight sight = sight_of<kMasked>(a, mask, at.b);
  Run run = {a.causal ? at.first : 0, a.length};
  if constexpr (kMasked) run = run_of(mask.rows_of_keys, a.keys, at.b, at.first, kTile);
  const int64_t own = a.kv_at(at.b, at.h, at.first);
  const int keys = a.keys - at.first, column = at.column * kSlices * kTile;
  float sum_k[kSlices][4][4] = {}, sum_v[kSlices][4][4] = {};
  for (int h = at.h * a.group(); h < (at.h + 1) * a.group(); ++h) {
    const int64_t numbers = (static_cast<int64_t>(at.b) * a.heads + h) * padded;
    for (int query = run.begin / kTile * kTile; query < run.end; query += kTile) {
      const T *own_q = q + a.q_at(at.b, h, query), *own_dy = dy + a.y_at(at.b, h, query);
      const int rows = a.length - query;
      float s[4][4], dp[4][4];
      dot_rows(s, own_q, a.q_ld, rows, k + own, a.kv_ld, keys, a.dim, stage);
      dot_rows(dp, own_dy, a.y_ld, rows, v + own, a.kv_ld, keys, a.dim, stage);
      score_gradients<kMasked>(a, sight, mask, h, query, at.first, lse + numbers, delta + numbers, s, dp);
      put(s, p);
      put(dp, ds);
      add_product<kSlices, false>(sum_v, p, own_dy, a.y_ld, rows, column, a.dim, stage);
      add_product<kSlices, false>(sum_k, ds, own_q, a.q_ld, rows, column, a.dim, stage);
    }
  }
  const float scale[4] = {a.scale, a.scale, a.scale, a.scale}, one[4] = {1, 1, 1, 1};
  if (dk != nullptr) store_rows<kSlices>(sum_k, scale, dk + own, a.kv_ld, keys, column, a.dim);
  if (dv != nullptr) store_rows<kSlices>(sum_v, one, dv + own, a.kv_ld, keys, column, a.dim);
}

// dq of 64 queries, over all keys that they see.
template <class T, int kSlices, bool kMasked>
__global__ __launch_bounds__(kThreads, kSlices == 1 ? 2 : 1) void grad_queries(
    AttentionShape a, AttentionMask mask, const T* dy, const T* q, const T* k, const T* v, const float* lse,
    const float* delta, int64_t padded, T* dq, float* diagonals, int slices) {
  CAIRN_SHARED float4 stage[kSlots];
  CAIRN_SHARED float4 ds[kSlots];
  const Place at(a.length, a.heads, slices, a.causal);
  const Sight sight = sight_of<kMasked>(a, mask, at.b);
  const Run run = keys_seen<kMasked>(a, mask, at.b, at.first);
  const int g = at.h / a.group(), rows = a.length - at.first, seen = run.end;
  const int column = at.column * kSlices * kTile;
  const int64_t numbers = (static_cast<int64_t>(at.b) * a.heads + at.h) * padded;
  const int64_t own = a.q_at(at.b, at.h, at.first);
  dy += a.y_at(at.b, at.h, at.first);
  diagonals = kMasked && at.column == 0 ? own_diagonals(a, kTile, at.b, at.h, at.first,
                                                        static_cast<int>(threadIdx.x), kThreads, diagonals)
                                        : nullptr;
  float sum[kSlices][4][4] = {};
  for (int key = run.begin; key < seen; key += kTile) {
    const int64_t to_key = a.kv_at(at.b, g, key);
    const int keys = seen - key;
    float s[4][4], dp[4][4];
    dot_rows(s, q + own, a.q_ld, rows, k + to_key, a.kv_ld, keys, a.dim, stage);
    dot_rows(dp, dy, a.y_ld, rows, v + to_key, a.kv_ld, keys, a.dim, stage);
    score_gradients<kMasked>(a, sight, mask, at.h, at.first, key, lse + numbers, delta + numbers, s, dp);
    put_turned(dp, ds);
    if (kMasked && diagonals != nullptr) {
      __syncthreads();
      add_diagonals(ds, diagonals, key, a.keys + kTile - 1);
    }
    add_product<kSlices, true>(sum, ds, k + to_key, a.kv_ld, keys, column, a.dim, stage);
  }
  const float scale[4] = {a.scale, a.scale, a.scale, a.scale};
  if (dq != nullptr) store_rows<kSlices>(sum, scale, dq + own, a.q_ld, rows, column, a.dim);
}

// `body` with the columns that one block makes, in slices of 64, as a constant; and how many blocks share a
// head.
template <class Body>
auto with_slices(int dim, const Body& body) {
  const int slices = (dim + 2 * kTile - 1) / (2 * kTile);
  return dim <= kTile ? body(std::integral_constant<int, 1>{}, 1)
                      : body(std::integral_constant<int, 2>{}, slices);
}

}  // namespace

std::unique_ptr<Kernel> make_attention(const Signature& s) {
  const auto shape = attention_shape(s, 0);
  if (!shape) return nullptr;
  const AttentionShape a = *shape;
  return with_float(s.in[0].dtype, [&](auto zero) {
    return with_slices(a.dim, [&](auto columns, int slices) {
      using T = decltype(zero);
      constexpr int kSlices = columns;
      const LaunchSize size{.blocks = a.blocks(kTile, a.heads) * slices, .threads = kThreads};
      const auto kernel = a.masked ? attention<T, kSlices, true> : attention<T, kSlices, false>;
      return make_kernel(
          [=](const Call& call) {
            const cudaStream_t stream = stream_of(call);
            const Heads<const T> in = heads_of<const T>(call.in, 0, a);
            const AttentionMask mask = prepare_mask(stream, a, call, call.workspace);
            launch(stream, kernel, size, a, mask, in.q, in.k, in.v, output<T>(call, 0),
                   output<float>(call, 1), slices);
          },
          mask_bytes(a));
    });
  });
}

std::unique_ptr<Kernel> make_attention_grad(const Signature& s) {
  const auto shape = attention_shape(s, 1);
  if (!shape) return nullptr;
  const AttentionShape a = *shape;
  const DType dtype = s.in[1].dtype;
  return with_float(dtype, [&](auto zero) {
    return with_slices(a.dim, [&](auto columns, int slices) {
      using T = decltype(zero);
      constexpr int kSlices = columns;
      const LaunchSize of_keys{.blocks = a.key_blocks(kTile, a.kv_heads) * slices, .threads = kThreads};
      const LaunchSize of_queries{.blocks = a.blocks(kTile, a.heads) * slices, .threads = kThreads};
      const auto keys_kernel = a.masked ? grad_keys<T, kSlices, true> : grad_keys<T, kSlices, false>;
      const auto queries_kernel = a.masked ? grad_queries<T, kSlices, true> : grad_queries<T, kSlices, false>;
      return make_kernel(
          [=](const Call& call) {
            const cudaStream_t stream = stream_of(call);
            const Heads<const T> in = heads_of<const T>(call.in, 1, a);
            const Heads<T> out = heads_of<T>(call.out, 0, a);
            const T* dy = input<const T>(call, 0);
            const RowNumbers rows(call.workspace, a);
            const AttentionMask mask =
                prepare_mask(stream, a, call, static_cast<char*>(call.workspace) + RowNumbers::bytes(a));
            launch_row_numbers(stream, a, dtype, dy, data_of(call.in, 4), input<const float>(call, 5), 1.0f,
                               rows);
            if (out.k != nullptr || out.v != nullptr)
              launch(stream, keys_kernel, of_keys, a, mask, dy, in.q, in.k, in.v, rows.lse, rows.delta,
                     rows.padded, out.k, out.v, slices);
            float* const diagonals = diagonals_of(a, call);
            if (out.q != nullptr || diagonals != nullptr)
              launch(stream, queries_kernel, of_queries, a, mask, dy, in.q, in.k, in.v, rows.lse, rows.delta,
                     rows.padded, out.q, diagonals, slices);
            launch_sink_gradient(stream, a, mask, rows, false, call);
            launch_distance_gradient(stream, a, kTile, diagonals, call);
          },
          RowNumbers::bytes(a) + mask_bytes(a) + (s.has_out(4) ? diagonal_bytes(a, kTile) : 0));
    });
  });
}

}  // namespace cairn::kernels::cuda
