// The gradient of attention in bfloat16 and float16 on tensor cores, after FlashAttention-2 (Dao, 2023), but with one
// kernel for dk and dv and one for dq, so that every sum has one owner and a fixed order. In the first,
// scores are made transposed: a warp has keys for rows, and what its products leave in registers is what the
// next ones take.
#include <cmath>

#include "kernels/cuda/attention/distances.h"
#include "kernels/cuda/attention/mma.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

// Sizes for rows of kD numbers: as much in registers as 255 to a thread allow.
template <int kD>
struct Sizes;
template <>
struct Sizes<64> {
  static constexpr int kKeyBlocks = 2,
                       kQueryStep = 32;  // grad_keys: 16 keys to a warp each; queries per tile
  static constexpr int kQueryBlocks = 2, kKeyStep = 64;  // grad_queries
};
template <>
struct Sizes<128> {
  static constexpr int kKeyBlocks = 1, kQueryStep = 64;
  static constexpr int kQueryBlocks = 2, kKeyStep = 32;
};

// p = exp(score - lse), ds = p (dp - delta) instead of s and dp, of a row and a key of head h. lse is in units of log 2.
template <bool kMasked>
__device__ __forceinline__ void score_gradient(const AttentionShape& a, const AttentionMask& mask, int h,
                                               int row, int key, float& s, float& dp, float lse,
                                               float delta) {
  float slope = 1;
  if constexpr (kMasked) s = bent(a, mask, h, row, key, s, slope);
  s = fast_exp2(s * a.scale_log2 - lse);
  dp = s * (dp - delta);
  if constexpr (kMasked) dp *= slope;
}

// Nothing of a key that the row does not see. A softmax of one element is constant; rounding in delta must not give it
// a gradient.
__device__ __forceinline__ void leave_out(const AttentionShape& a, const Sight& sight, bool sinks, int row,
                                          int key, float& s, float& dp) {
  const Run run = sight.keys(a, row);
  if (!sight.sees(a, row, key)) s = 0, dp = 0;
  if (!sinks && run.end - run.begin == 1) dp = 0;
}

// Heads of more numbers leave no shared memory for diagonals.
constexpr int kMostOfDiagonals = 64;
template <int kKeys>
constexpr int kDiagonalPitch = kKeys + 8;  // so that rows begin in different banks

// diagonals[column - row + 16 kM - 1] += v's numbers of rows and columns so far apart, of the first `count` diagonals. A lane
// has a diagonal of 16 rows, which it adds in order; `mine`: room for these, the warp's own.
template <int kM, int kKeys>
__device__ __forceinline__ void add_diagonals(const float (&v)[kM][kKeys / 8][4], float* mine,
                                              float* diagonals, int count) {
  constexpr int kPitch = kDiagonalPitch<kKeys>;
  const int lane = own_lane(), g = lane / 4, t = lane % 4;
  CAIRN_UNROLL
  for (int m = 0; m < kM; ++m) {
    __syncwarp();
    CAIRN_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) {
      CAIRN_UNROLL
      for (int j = 0; j < 4; ++j) mine[(j / 2 * 8 + g) * kPitch + 8 * n + 2 * t + j % 2] = v[m][n][j];
    }
    __syncwarp();
    for (int own = lane; own < kKeys + 15; own += kWarp) {
      const int apart = own - 15, to = own + 16 * (kM - 1 - m);
      float sum = 0;
      for (int row = apart < 0 ? -apart : 0; row < 16 && row + apart < kKeys; ++row)
        sum += mine[row * kPitch + row + apart];
      if (to < count) diagonals[to] += sum;
    }
  }
}

// Starts to copy lse and, after it, delta of kRows queries of a head, whose numbers begin at `head`.
template <int kRows>
__device__ __forceinline__ void copy_numbers(Shared to, const float* lse, const float* delta, int64_t head,
                                             int query, int64_t padded) {
  constexpr int kEach = kRows / 4;
  const int i = thread_anew(), row = query + i % kEach * 4;
  static_assert(2 * kEach <= kMmaThreads);
  if (i >= 2 * kEach) return;
  const bool there = row < padded;
  cp_async(to + static_cast<unsigned>(i * 16), (i < kEach ? lse : delta) + (there ? head + row : 0), there);
}

// dk and dv of a block of keys, over all queries of the group that see them.
template <class T, int kD, bool kMasked>
__global__ __launch_bounds__(kMmaThreads,
                             2) void grad_keys_mma(AttentionShape a, AttentionMask mask, const T* dy,
                                                   const T* q, const T* k, const T* v, const float* lse,
                                                   const float* delta, int64_t padded, T* dk, T* dv) {
  constexpr int kM = Sizes<kD>::kKeyBlocks, kKeys = kMmaWarps * 16 * kM, kQueries = Sizes<kD>::kQueryStep;
  constexpr int kN = kQueries / 8, kTile = Tile<kD>::bytes(kQueries), kNumbers = kQueries * 4;
  constexpr int kStage = 2 * kTile + 2 * kNumbers;  // q, dy, lse, delta
  CAIRN_DYNAMIC_SHARED(char, shared);
  const Shared tile_k = shared_address(shared), tile_v = tile_k + Tile<kD>::bytes(kKeys),
               stages = tile_v + Tile<kD>::bytes(kKeys);
  const BlockPlace at(a.keys, a.kv_heads, kKeys, false);
  const int own = at.first + own_warp() * 16 * kM;  // the warp's first key
  const int64_t to_keys = a.kv_at(at.b, at.h, at.first);

  // Tiles of queries: those of one head after those of another. After the last there are zeros.
  Run run = {a.causal ? at.first : 0, a.length};
  if constexpr (kMasked) run = run_of(mask.rows_of_keys, a.keys, at.b, at.first, kKeys);
  const int first_query = run.begin / kQueries * kQueries, heads_end = (at.h + 1) * a.group();
  const auto fetch = [&](int h, int query, Shared to) {
    copy_rows<kD, kQueries>(to, q + a.q_at(at.b, h, query), a.q_ld, a.length - query, a.dim);
    copy_rows<kD, kQueries>(to + kTile, dy + a.y_at(at.b, h, query), a.y_ld, a.length - query, a.dim);
    copy_numbers<kQueries>(to + 2 * kTile, lse, delta, (static_cast<int64_t>(at.b) * a.heads + h) * padded,
                           query, padded);
  };
  copy_rows<kD, kKeys>(tile_k, k + to_keys, a.kv_ld, a.keys - at.first, a.dim);
  copy_rows<kD, kKeys>(tile_v, v + to_keys, a.kv_ld, a.keys - at.first, a.dim);
  fetch(at.h * a.group(), first_query, stages);
  cp_async_commit();

  float sum_k[kM][kD / 8][4], sum_v[kM][kD / 8][4];
  clear(sum_k);
  clear(sum_v);
  Shared tile_q = stages;
  const Shared both = stages + stages + kStage;
  for (int h = at.h * a.group(), query = first_query; h < heads_end;) {
    int next_h = h, next_query = query + kQueries;
    if (next_query >= run.end) ++next_h, next_query = first_query;
    if (next_h < heads_end) fetch(next_h, next_query, both - tile_q);
    cp_async_commit();  // or an empty group, so that one may be left
    cp_async_wait<1>();
    __syncthreads();
    const Shared tile_dy = tile_q + kTile, numbers = tile_dy + kTile;
    if (own < a.keys && (kMasked || !a.causal || own < query + kQueries)) {
      const unsigned own_rows = static_cast<unsigned>(thread_anew() / kWarp * Tile<kD>::bytes(16 * kM));
      float s[kM][kN][4], dp[kM][kN][4];
      dot_rows<T, kD>(s, tile_k + own_rows, tile_q);
      dot_rows<T, kD>(dp, tile_v + own_rows, tile_dy);
      const int lane = thread_anew() % kWarp, g = lane / 4, t = lane % 4;
      // Queries after the last have zeros for q, dy, lse and delta, and so add nothing.
      CAIRN_UNROLL
      for (int n = 0; n < kN; ++n) {
        const float2 row_lse = load_shared_floats(numbers + static_cast<unsigned>((8 * n + 2 * t) * 4));
        const float2 row_delta =
            load_shared_floats(numbers + kNumbers + static_cast<unsigned>((8 * n + 2 * t) * 4));
        CAIRN_UNROLL
        for (int m = 0; m < kM; ++m) {
          CAIRN_UNROLL
          for (int j = 0; j < 4; ++j) {
            score_gradient<kMasked>(a, mask, h, query + 8 * n + 2 * t + j % 2, own + m * 16 + j / 2 * 8 + g,
                                    s[m][n][j], dp[m][n][j], j % 2 ? row_lse.y : row_lse.x,
                                    j % 2 ? row_delta.y : row_delta.x);
          }
        }
      }
      if constexpr (kMasked) {
        const Sight sight(a, mask, at.b);
        CAIRN_UNROLL
        for (int m = 0; m < kM; ++m) {
          CAIRN_UNROLL
          for (int j = 0; j < 4; ++j) {
            const int key = own + m * 16 + j / 2 * 8 + g;
            CAIRN_UNROLL
            for (int n = 0; n < kN; ++n)
              leave_out(a, sight, mask.sinks != nullptr, query + 8 * n + 2 * t + j % 2, key, s[m][n][j],
                        dp[m][n][j]);
          }
        }
      } else if (a.length == 1 || (a.causal && own + 16 * kM - 1 > query)) {
        CAIRN_UNROLL
        for (int m = 0; m < kM; ++m) {
          CAIRN_UNROLL
          for (int j = 0; j < 4; ++j) {
            const int first_row = query + 2 * t + j % 2, key = own + m * 16 + j / 2 * 8 + g;
            CAIRN_UNROLL
            for (int n = 0; n < kN; ++n) {
              const int row = first_row + 8 * n;
              if (a.causal && key > row) s[m][n][j] = 0, dp[m][n][j] = 0;
              // A softmax of one element is constant; rounding in delta must not give it a gradient.
              if (row == 0) dp[m][n][j] = 0;
            }
          }
        }
      }
      unsigned weights[kM][kN / 2][4];
      round_pairs<T>(weights, s);
      add_product<T, kD>(sum_v, weights, tile_dy);
      round_pairs<T>(weights, dp);
      add_product<T, kD>(sum_k, weights, tile_q);
    }
    __syncthreads();
    h = next_h;
    query = next_query;
    tile_q = both - tile_q;
  }
  if (own >= a.keys) return;
  const unsigned own_rows = static_cast<unsigned>(own_warp() * Tile<kD>::bytes(16 * kM));
  float factor[kM][2];
  const int64_t to = a.kv_at(at.b, at.h, own);
  const auto store = [&](const float(&sum)[kM][kD / 8][4], float by, Shared tile, T* out) {
    for (auto& row : factor) row[0] = row[1] = by;
    if (out != nullptr) store_rows<kD>(sum, factor, tile + own_rows, out + to, a.kv_ld, a.keys - own, a.dim);
  };
  store(sum_k, a.scale, tile_k, dk);
  store(sum_v, 1.0f, tile_v, dv);
}

// dq of a block of queries, over all keys that they see.
template <class T, int kD, bool kMasked>
__global__ __launch_bounds__(kMmaThreads, 2) void grad_queries_mma(AttentionShape a, AttentionMask mask,
                                                                   const T* dy, const T* q, const T* k,
                                                                   const T* v, const float* lse,
                                                                   const float* delta, int64_t padded, T* dq,
                                                                   float* diagonals) {
  constexpr int kM = Sizes<kD>::kQueryBlocks, kQueries = kMmaWarps * 16 * kM, kKeys = Sizes<kD>::kKeyStep;
  constexpr int kN = kKeys / 8, kTile = Tile<kD>::bytes(kKeys), kStage = 2 * kTile;  // k, v
  constexpr int kNumbers = kQueries * 4;
  CAIRN_DYNAMIC_SHARED(char, shared);
  const Shared tile_q = shared_address(shared), tile_dy = tile_q + Tile<kD>::bytes(kQueries),
               numbers = tile_dy + Tile<kD>::bytes(kQueries), stages = numbers + 2 * kNumbers;
  const BlockPlace at(a.length, a.heads, kQueries, a.causal);
  Run run = {0, a.causal && at.first + kQueries < a.length ? at.first + kQueries : a.length};
  if constexpr (kMasked) run = run_of(mask.keys_of_rows, a.length, at.b, at.first, kQueries);
  const int group = at.h / a.group(), begin = run.begin / kKeys * kKeys, seen = run.end;
  const int lane = own_lane(), g = lane / 4, t = lane % 4;
  const int own = at.first + own_warp() * 16 * kM;  // the warp's first query
  const unsigned own_rows = static_cast<unsigned>(own_warp() * Tile<kD>::bytes(16 * kM));
  const int keys = kMasked ? a.keys : a.length;  // the same without a mask, in one register
  const int64_t to_keys = static_cast<int64_t>(at.b) * keys * a.kv_ld + static_cast<int64_t>(group) * a.dim;
  const auto fetch = [&](int key, Shared to) {
    const int64_t from = to_keys + static_cast<int64_t>(key) * a.kv_ld;
    copy_rows<kD, kKeys>(to, k + from, a.kv_ld, keys - key, a.dim);
    copy_rows<kD, kKeys>(to + kTile, v + from, a.kv_ld, keys - key, a.dim);
  };
  copy_rows<kD, kQueries>(tile_q, q + a.q_at(at.b, at.h, at.first), a.q_ld, a.length - at.first, a.dim);
  copy_rows<kD, kQueries>(tile_dy, dy + a.y_at(at.b, at.h, at.first), a.y_ld, a.length - at.first, a.dim);
  copy_numbers<kQueries>(numbers, lse, delta, (static_cast<int64_t>(at.b) * a.heads + at.h) * padded,
                         at.first, padded);
  fetch(begin, stages);
  cp_async_commit();

  if (kMasked && own < a.length)
    diagonals = own_diagonals(a, 16 * kM, at.b, at.h, own, lane, kWarp, diagonals);
  float sum[kM][kD / 8][4];
  clear(sum);
  Shared tile_k = stages;
  const Shared both = stages + stages + kStage;
  for (int key = begin; key < seen; key += kKeys) {
    if (key + kKeys < seen) fetch(key + kKeys, both - tile_k);
    cp_async_commit();  // or an empty group, so that one may be left
    cp_async_wait<1>();
    __syncthreads();
    if (own < a.length && (kMasked || !a.causal || key < own + 16 * kM)) {
      float s[kM][kN][4], dp[kM][kN][4];
      dot_rows<T, kD>(s, tile_q + own_rows, tile_k);
      dot_rows<T, kD>(dp, tile_dy + own_rows, tile_k + kTile);
      CAIRN_UNROLL
      for (int m = 0; m < kM; ++m) {
        CAIRN_UNROLL
        for (int half = 0; half < 2; ++half) {
          const Shared row = numbers + static_cast<unsigned>((own - at.first + m * 16 + half * 8 + g) * 4);
          const float row_lse = load_shared_float(row), row_delta = load_shared_float(row + kNumbers);
          CAIRN_UNROLL
          for (int n = 0; n < kN; ++n) {
            CAIRN_UNROLL
            for (int j = 2 * half; j < 2 * half + 2; ++j)
              score_gradient<kMasked>(a, mask, at.h, own + m * 16 + half * 8 + g, key + 8 * n + 2 * t + j % 2,
                                      s[m][n][j], dp[m][n][j], row_lse, row_delta);
          }
        }
      }
      if constexpr (kMasked) {
        const Sight sight(a, mask, at.b);
        CAIRN_UNROLL
        for (int m = 0; m < kM; ++m) {
          CAIRN_UNROLL
          for (int j = 0; j < 4; ++j) {
            const int row = own + m * 16 + j / 2 * 8 + g;
            CAIRN_UNROLL
            for (int n = 0; n < kN; ++n)
              leave_out(a, sight, mask.sinks != nullptr, row, key + 8 * n + 2 * t + j % 2, s[m][n][j],
                        dp[m][n][j]);
          }
        }
        if constexpr (kD == kMostOfDiagonals) {
          if (diagonals != nullptr) {
            auto* mine =
                reinterpret_cast<float*>(shared + Tile<kD>::bytes(2 * kQueries + 4 * kKeys) + 2 * kNumbers) +
                own_warp() * 16 * kDiagonalPitch<kKeys>;
            add_diagonals<kM, kKeys>(dp, mine, diagonals + key, a.keys + 16 * kM - 1 - key);
          }
        }
      } else if (key + kKeys > a.length || (a.causal && key + kKeys - 1 > own)) {
        CAIRN_UNROLL
        for (int m = 0; m < kM; ++m) {
          CAIRN_UNROLL
          for (int j = 0; j < 4; ++j) {
            const int row = own + m * 16 + j / 2 * 8 + g;
            // Columns from `end` on are not seen; of a softmax of one element, which is constant, none is.
            int end = (a.causal && row < a.length ? row + 1 : a.length) - key - 2 * t - j % 2;
            if (a.length == 1 || (a.causal && row == 0)) end = -kKeys;
            CAIRN_UNROLL
            for (int n = 0; n < kN; ++n)
              if (8 * n >= end) dp[m][n][j] = 0;
          }
        }
      }
      unsigned weights[kM][kN / 2][4];
      round_pairs<T>(weights, dp);
      add_product<T, kD>(sum, weights, tile_k);
    }
    __syncthreads();
    tile_k = both - tile_k;
  }
  if constexpr (kMasked) {  // what was copied for rows that see nothing
    cp_async_wait<0>();
    __syncthreads();
  }
  if (own >= a.length) return;
  float factor[kM][2];
  for (auto& row : factor) row[0] = row[1] = a.scale;
  if (dq != nullptr)
    store_rows<kD>(sum, factor, tile_q + own_rows, dq + a.q_at(at.b, at.h, own), a.q_ld, a.length - own,
                   a.dim);
}

template <class T, int kD>
std::unique_ptr<Kernel> make_with(const AttentionShape& a, DType type, bool of_distances) {
  using Size = Sizes<kD>;
  constexpr int kKeys = kMmaWarps * 16 * Size::kKeyBlocks, kQueries = kMmaWarps * 16 * Size::kQueryBlocks;
  constexpr int64_t kKeysShared =
      Tile<kD>::bytes(2 * kKeys + 4 * Size::kQueryStep) + 4 * 4 * Size::kQueryStep;
  constexpr int64_t kQueriesShared = Tile<kD>::bytes(2 * kQueries + 4 * Size::kKeyStep) + 2 * 4 * kQueries;
  constexpr int kRows = 16 * Size::kQueryBlocks;  // of a warp
  const int64_t queries_shared =
      kQueriesShared + (of_distances ? 4 * kMmaWarps * 16 * kDiagonalPitch<Size::kKeyStep> : 0);
  static_assert(kRowPadding % Size::kQueryStep == 0 && kKeys % Size::kQueryStep == 0);
  const LaunchSize of_keys{
      .blocks = a.key_blocks(kKeys, a.kv_heads), .threads = kMmaThreads, .shared_bytes = kKeysShared};
  const LaunchSize of_queries{
      .blocks = a.blocks(kQueries, a.heads), .threads = kMmaThreads, .shared_bytes = queries_shared};
  const auto keys_kernel = a.masked ? grad_keys_mma<T, kD, true> : grad_keys_mma<T, kD, false>;
  const auto queries_kernel = a.masked ? grad_queries_mma<T, kD, true> : grad_queries_mma<T, kD, false>;
  allow_shared(keys_kernel, kKeysShared);
  allow_shared(queries_kernel, queries_shared);
  return make_kernel(
      [=](const Call& call) {
        const cudaStream_t stream = stream_of(call);
        const Heads<const T> in = heads_of<const T>(call.in, 1, a);
        const Heads<T> out = heads_of<T>(call.out, 0, a);
        const T* dy = input<const T>(call, 0);
        const RowNumbers rows(call.workspace, a);
        const AttentionMask mask =
            prepare_mask(stream, a, call, static_cast<char*>(call.workspace) + RowNumbers::bytes(a));
        launch_row_numbers(stream, a, type, dy, data_of(call.in, 4), input<const float>(call, 5), kLog2E,
                           rows);
        if (out.k != nullptr || out.v != nullptr)
          launch(stream, keys_kernel, of_keys, a, mask, dy, in.q, in.k, in.v, rows.lse, rows.delta,
                 rows.padded, out.k, out.v);
        float* const diagonals = diagonals_of(a, call);
        if (out.q != nullptr || diagonals != nullptr)
          launch(stream, queries_kernel, of_queries, a, mask, dy, in.q, in.k, in.v, rows.lse, rows.delta,
                 rows.padded, out.q, diagonals);
        launch_sink_gradient(stream, a, mask, rows, true, call);
        launch_distance_gradient(stream, a, kRows, diagonals, call);
      },
      RowNumbers::bytes(a) + mask_bytes(a) + (of_distances ? diagonal_bytes(a, kRows) : 0));
}

}  // namespace

std::unique_ptr<Kernel> make_attention_grad_mma(const Signature& s) {
  const auto shape = attention_shape(s, 1);
  const bool of_distances = s.has_out(4);
  if (!shape || !fits_mma(s, 1, *shape) || (of_distances && shape->dim > kMostOfDiagonals)) return nullptr;
  const DType type = s.in[1].dtype;
  return with_half(type, [&](auto zero) {
    using T = decltype(zero);
    return shape->dim <= 64 ? make_with<T, 64>(*shape, type, of_distances)
                            : make_with<T, 128>(*shape, type, false);
  });
}

}  // namespace cairn::kernels::cuda
