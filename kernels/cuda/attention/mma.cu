// Attention in bfloat16 and float16 on tensor cores, after FlashAttention-2 (Dao, 2023): a warp keeps its queries'
// outputs in registers while tiles of keys and values pass; scores and sums in float32, probabilities rounded
// to the operands' type for their product with the values.
#include <cmath>

#include "kernels/cuda/attention/mma.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kKeys = 64;

// A warp has 16 kM queries.
template <class T, int kD, int kM, bool kMasked>
__global__ __launch_bounds__(kMmaThreads, kM == 2 ? 2 : 3) void attention_mma(AttentionShape a,
                                                                              AttentionMask mask, const T* q,
                                                                              const T* k, const T* v, T* y,
                                                                              float* lse) {
  constexpr int kQueries = kMmaWarps * 16 * kM, kN = kKeys / 8;
  CAIRN_DYNAMIC_SHARED(char, shared);
  const Shared tile_q = shared_address(shared), tile_k = tile_q + Tile<kD>::bytes(kQueries),
               tile_v = tile_k + Tile<kD>::bytes(kKeys);
  const BlockPlace at(a.length, a.heads, kQueries, a.causal);
  Run run = {0, a.causal && at.first + kQueries < a.length ? at.first + kQueries : a.length};
  if constexpr (kMasked) run = run_of(mask.keys_of_rows, a.length, at.b, at.first, kQueries);
  const int group = at.h / a.group(), begin = run.begin / kKeys * kKeys, seen = run.end;
  const int lane = own_lane(), g = lane / 4, t = lane % 4;
  const int own = at.first + own_warp() * 16 * kM;  // the warp's first query
  const Shared own_q = tile_q + static_cast<unsigned>(own_warp() * Tile<kD>::bytes(16 * kM));
  k += a.kv_at(at.b, group, 0);
  v += a.kv_at(at.b, group, 0);

  copy_rows<kD, kQueries>(tile_q, q + a.q_at(at.b, at.h, at.first), a.q_ld, a.length - at.first, a.dim);
  copy_rows<kD, kKeys>(tile_k, k + static_cast<int64_t>(begin) * a.kv_ld, a.kv_ld, a.keys - begin, a.dim);
  cp_async_commit();

  float out[kM][kD / 8][4], largest[kM][2], sum[kM][2];
  clear(out);
  CAIRN_UNROLL
  for (int m = 0; m < kM; ++m) {
    CAIRN_UNROLL
    for (int half = 0; half < 2; ++half) largest[m][half] = -INFINITY, sum[m][half] = 0;
  }
  for (int key = begin; key < seen; key += kKeys) {
    // Queries after the last and keys that none of the warp's queries sees are left out.
    const bool works = own < a.length && (kMasked || !a.causal || key < own + 16 * kM);
    cp_async_wait<0>();
    __syncthreads();
    copy_rows<kD, kKeys>(tile_v, v + static_cast<int64_t>(key) * a.kv_ld, a.kv_ld, a.keys - key, a.dim);
    cp_async_commit();
    unsigned weights[kM][kN / 2][4];
    if (works) {
      float s[kM][kN][4];
      dot_rows<T, kD>(s, own_q, tile_k);
      if constexpr (kMasked) {
        const Sight sight(a, mask, at.b);
        CAIRN_UNROLL
        for (int m = 0; m < kM; ++m) {
          CAIRN_UNROLL
          for (int i = 0; i < 4; ++i) {
            const int row = own + m * 16 + i / 2 * 8 + g;
            CAIRN_UNROLL
            for (int n = 0; n < kN; ++n) {
              const int column = key + 8 * n + 2 * t + i % 2;
              float slope;
              s[m][n][i] = bent(a, mask, at.h, row, column, s[m][n][i], slope);
              if (!sight.sees(a, row, column)) s[m][n][i] = -INFINITY;
            }
          }
        }
      } else if (key + kKeys > a.length || (a.causal && key + kKeys - 1 > own)) {
        CAIRN_UNROLL
        for (int m = 0; m < kM; ++m) {
          CAIRN_UNROLL
          for (int i = 0; i < 4; ++i) {
            const int row = own + m * 16 + i / 2 * 8 + g;
            const int end = (a.causal && row < a.length ? row + 1 : a.length) - key - 2 * t - i % 2;
            CAIRN_UNROLL
            for (int n = 0; n < kN; ++n)
              if (8 * n >= end) s[m][n][i] = -INFINITY;
          }
        }
      }
      CAIRN_UNROLL
      for (int m = 0; m < kM; ++m) {
        CAIRN_UNROLL
        for (int half = 0; half < 2; ++half) {
          float most = largest[m][half];
          CAIRN_UNROLL
          for (int n = 0; n < kN; ++n) most = fmaxf(most, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
          most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
          most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
          float base = most;
          if constexpr (kMasked)
            if (most == -INFINITY) base = 0;  // of a row that has seen no key yet
          const float shrink = fast_exp2((largest[m][half] - base) * a.scale_log2),
                      shift = base * a.scale_log2;
          largest[m][half] = most;
          float added = 0;
          CAIRN_UNROLL
          for (int n = 0; n < kN; ++n) {
            CAIRN_UNROLL
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
              s[m][n][i] = fast_exp2(s[m][n][i] * a.scale_log2 - shift);
              added += s[m][n][i];
            }
          }
          sum[m][half] = sum[m][half] * shrink + added;
          CAIRN_UNROLL
          for (int n = 0; n < kD / 8; ++n) {
            out[m][n][2 * half] *= shrink;
            out[m][n][2 * half + 1] *= shrink;
          }
        }
      }
      round_pairs<T>(weights, s);
    }
    cp_async_wait<0>();
    __syncthreads();
    if (key + kKeys < seen) {
      const int next = key + kKeys;
      copy_rows<kD, kKeys>(tile_k, k + static_cast<int64_t>(next) * a.kv_ld, a.kv_ld, a.keys - next, a.dim);
      cp_async_commit();
    }
    if (works) add_product<T, kD>(out, weights, tile_v);
  }
  if constexpr (kMasked) {  // what was copied for rows that see nothing
    cp_async_wait<0>();
    __syncthreads();
  }
  if (own >= a.length) return;
  float inverse[kM][2];
  CAIRN_UNROLL
  for (int m = 0; m < kM; ++m) {
    CAIRN_UNROLL
    for (int half = 0; half < 2; ++half) {
      float total = sum[m][half];
      total += __shfl_xor_sync(kAllLanes, total, 1);
      total += __shfl_xor_sync(kAllLanes, total, 2);
      inverse[m][half] = 1.0f / total;
      float row_lse = largest[m][half] * a.scale + logf(total);
      if constexpr (kMasked) {
        const float* sink = mask.sinks == nullptr ? nullptr : mask.sinks + at.h;
        row_lse = finish_row(total, largest[m][half] * a.scale, sink, inverse[m][half]);
      }
      const int row = own + m * 16 + half * 8 + g;
      if (lse != nullptr && t == 0 && row < a.length) lse[a.row_at(at.b, at.h, row)] = row_lse;
    }
  }
  store_rows<kD>(out, inverse, own_q, y + a.y_at(at.b, at.h, own), a.y_ld, a.length - own, a.dim);
}

template <class T, int kD, int kM>
std::unique_ptr<Kernel> make_with(const AttentionShape& a) {
  constexpr int kQueries = kMmaWarps * 16 * kM;
  constexpr int64_t kShared = Tile<kD>::bytes(kQueries + 2 * kKeys);
  const LaunchSize size{
      .blocks = a.blocks(kQueries, a.heads), .threads = kMmaThreads, .shared_bytes = kShared};
  const auto kernel = a.masked ? attention_mma<T, kD, kM, true> : attention_mma<T, kD, kM, false>;
  allow_shared(kernel, kShared);
  return make_kernel(
      [=](const Call& call) {
        const cudaStream_t stream = stream_of(call);
        const Heads<const T> in = heads_of<const T>(call.in, 0, a);
        const AttentionMask mask = prepare_mask(stream, a, call, call.workspace);
        launch(stream, kernel, size, a, mask, in.q, in.k, in.v, output<T>(call, 0), output<float>(call, 1));
      },
      mask_bytes(a));
}

}  // namespace

std::unique_ptr<Kernel> make_attention_mma_of(const AttentionShape& a, DType type, bool wide) {
  return with_half(type, [&](auto zero) {
    using T = decltype(zero);
    if (a.dim <= 64) return wide ? make_with<T, 64, 2>(a) : make_with<T, 64, 1>(a);
    return wide ? make_with<T, 128, 2>(a) : make_with<T, 128, 1>(a);
  });
}

std::unique_ptr<Kernel> make_attention_mma(const Signature& s) {
  const auto shape = attention_shape(s, 0);
  if (!shape || !fits_mma(s, 0, *shape)) return nullptr;
  return make_attention_mma_of(*shape, s.in[0].dtype,
                               shape->blocks(kMmaWarps * 32, shape->heads) >= kManyBlocks);
}

}  // namespace cairn::kernels::cuda
