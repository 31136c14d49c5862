// Attention of one row of q per sequence, as where text is made token by token: every cached row is read once, by the
// heads of its group together. Keys are taken in chunks at fixed places, whose results are put together in order, so that
// the bits do not depend on who works on which chunk.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/decode.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

// Rows of k or v of one head, and what goes with them: numbers of `heads` heads.
#ifndef CAIRN_KERNELS_CPU_ATTENTION_DECODE_ROWS_
#define CAIRN_KERNELS_CPU_ATTENTION_DECODE_ROWS_
namespace cairn::kernels::cpu {
inline constexpr int64_t kChunk = 256;  // keys
struct DecodeRows {
  cairn::DType type;
  const void* rows;
  int64_t ld, count, dim, heads;
};
}  // namespace cairn::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// Rows lie a page or more apart, which no processor foresees.
template <class T>
HWY_INLINE void fetch_row(const DecodeRows& r, int64_t s) {
  constexpr int64_t kAhead = 8;
  if (s + kAhead >= r.count) return;
  const char* row = reinterpret_cast<const char*>(static_cast<const T*>(r.rows) + (s + kAhead) * r.ld);
  for (int64_t i = 0; i < r.dim * static_cast<int64_t>(sizeof(T)); i += 64) __builtin_prefetch(row + i);
}

// to[h * kChunk + s] = q[h] . row s, for some heads and rows.
template <int kHeads, int kRows, class T>
HWY_INLINE void dots_of(const DecodeRows& r, const float* q, int64_t s, float* to) {
  CAIRN_VECTORS(sum, [kHeads][kRows]);
#pragma GCC unroll 8
  for (int h = 0; h < kHeads; ++h)
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sum[h][i] = hn::Zero(DF());
  const T* row = static_cast<const T*>(r.rows) + s * r.ld;
  for_each_vector(0, r.dim, [&](auto t, int64_t d) {
    CAIRN_VECTORS(right, [kRows]);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) right[i] = get(t, row + i * r.ld + d);
#pragma GCC unroll 8
    for (int h = 0; h < kHeads; ++h) {
      const V left = get(t, q + h * r.dim + d);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) sum[h][i] = hn::MulAdd(left, right[i], sum[h][i]);
    }
  });
#pragma GCC unroll 8
  for (int h = 0; h < kHeads; ++h)
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) to[h * kChunk + s + i] = sum_lanes(sum[h][i]);
}
template <int kHeads, int kRows, class T>
HWY_INLINE void dots_of_heads(const DecodeRows& r, const float* q, float* to) {
  int64_t s = 0;
  for (; s + kRows <= r.count; s += kRows) {
    for (int64_t i = 0; i < kRows; ++i) fetch_row<T>(r, s + i);
    dots_of<kHeads, kRows, T>(r, q, s, to);
  }
  for (; s < r.count; ++s) dots_of<kHeads, 1, T>(r, q, s, to);
}
void decode_dots_dispatch(const DecodeRows& r, const float* q, float* to) {
  with_float(r.type, [&](auto zero) {
    using T = decltype(zero);
    int64_t h = 0;
    for (; h + 4 <= r.heads; h += 4) dots_of_heads<4, 4, T>(r, q + h * r.dim, to + h * kChunk);
    for (; h + 2 <= r.heads; h += 2) dots_of_heads<2, 4, T>(r, q + h * r.dim, to + h * kChunk);
    if (h < r.heads) dots_of_heads<1, 4, T>(r, q + h * r.dim, to + h * kChunk);
  });
}

// to[h * dim + d] = sum of p[h * kChunk + s] row s, for some heads and columns from d on.
template <int kHeads, int kVectors, class T, class Tag>
HWY_INLINE void sums_of(const DecodeRows& r, const float* p, int64_t d, float* to, Tag tag, bool fetches) {
  const int64_t w = lanes();
  CAIRN_VECTORS(sum, [kHeads][kVectors]);
#pragma GCC unroll 8
  for (int h = 0; h < kHeads; ++h)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[h][v] = hn::Zero(DF());
  const T* row = static_cast<const T*>(r.rows) + d;
  for (int64_t s = 0; s < r.count; ++s, row += r.ld) {
    if (fetches) fetch_row<T>(r, s);
    CAIRN_VECTORS(right, [kVectors]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) right[v] = get(tag, row + v * w);
#pragma GCC unroll 8
    for (int h = 0; h < kHeads; ++h) {
      const V left = set(p[h * kChunk + s]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[h][v] = hn::MulAdd(left, right[v], sum[h][v]);
    }
  }
#pragma GCC unroll 8
  for (int h = 0; h < kHeads; ++h)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) put(tag, sum[h][v], to + h * r.dim + d + v * w);
}
template <int kHeads, class T>
HWY_INLINE void sums_of_heads(const DecodeRows& r, const float* p, float* to, bool first) {
  const int64_t w = lanes();
  int64_t d = 0;
  for (; d + 4 * w <= r.dim; d += 4 * w) sums_of<kHeads, 4, T>(r, p, d, to, Full(), first && d == 0);
  for (; d + w <= r.dim; d += w) sums_of<kHeads, 1, T>(r, p, d, to, Full(), first && d == 0);
  if (d < r.dim) sums_of<kHeads, 1, T>(r, p, d, to, Part{static_cast<size_t>(r.dim - d)}, first && d == 0);
}
void decode_sums_dispatch(const DecodeRows& r, const float* p, float* to) {
  with_float(r.type, [&](auto zero) {
    using T = decltype(zero);
    int64_t h = 0;
    for (; h + 4 <= r.heads; h += 4) sums_of_heads<4, T>(r, p + h * kChunk, to + h * r.dim, h == 0);
    for (; h + 2 <= r.heads; h += 2) sums_of_heads<2, T>(r, p + h * kChunk, to + h * r.dim, h == 0);
    if (h < r.heads) sums_of_heads<1, T>(r, p + h * kChunk, to + h * r.dim, h == 0);
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

HWY_EXPORT(decode_dots_dispatch);
HWY_EXPORT(decode_sums_dispatch);

namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Chunks of keys that the row of a sequence sees.
KeyRange chunks_of(const KeyRange& keys) {
  return keys.empty() ? KeyRange{} : KeyRange{keys.begin / kChunk, (keys.end - 1) / kChunk + 1};
}

// Log-sum-exps [batch, kv_heads, chunks, group] and sums of each [.., dim]; then what each thread has.
struct Buffers {
  Workspace space;
  int64_t chunks, lse, sums, own, own_bytes, q, scores;

  Buffers(const AttentionShape& a, int threads) : chunks((a.keys + kChunk - 1) / kChunk) {
    lse = space.add(a.batch * a.heads * chunks * 4);
    sums = space.add(a.batch * a.heads * chunks * a.dim * 4);
    Workspace of_thread;
    q = of_thread.add(a.group() * a.dim * 4);
    scores = of_thread.add(a.group() * kChunk * 4);
    own_bytes = of_thread.bytes();
    own = space.add(own_bytes * threads);
  }
};

// y and the log-sum-exp of a row from those of its chunks, `step` numbers from one log-sum-exp to the next.
float put_together(const AttentionShape& a, const KeyRange& chunks, const float* lse, const float* sums,
                   int64_t step, const float* sink, float* y) {
  std::fill(y, y + a.dim, 0.0f);
  if (chunks.empty()) return kNothing;
  float largest = sink == nullptr ? kNothing : *sink, total = 0;
  for (int64_t c = chunks.begin; c < chunks.end; ++c) largest = std::max(largest, lse[c * step]);
  if (sink != nullptr) total = std::exp(*sink - largest);
  for (int64_t c = chunks.begin; c < chunks.end; ++c) total += std::exp(lse[c * step] - largest);
  const float all = largest + std::log(total);
  for (int64_t c = chunks.begin; c < chunks.end; ++c) {
    const float weight = std::exp(lse[c * step] - all);
    for (int64_t d = 0; d < a.dim; ++d) y[d] += weight * sums[c * step * a.dim + d];
  }
  return all;
}

}  // namespace

std::unique_ptr<Kernel> make_attention_decode(const Signature& s) {
  const auto shape = attention_shape(s, 0);
  if (!shape || shape->length != 1 || shape->keys == 1 || s.has_in(7)) return nullptr;
  const AttentionShape a = *shape;
  const Buffers at(a, s.threads);
  return make_kernel(
      [=](const Call& call) {
        const auto row_of = [&](std::span<const Tensor> tensors, size_t which, int64_t element) {
          return static_cast<char*>(data_of(tensors, which)) + element * dtype_bytes(a.type);
        };
        const AttentionMask mask(a, call);
        const int64_t group = a.group(), dim = a.dim;
        float* const lse = Workspace::at<float>(call.workspace, at.lse);
        float* const sums = Workspace::at<float>(call.workspace, at.sums);
        const auto own = [&](int thread) {
          return static_cast<char*>(call.workspace) + at.own + thread * at.own_bytes;
        };
        const auto place = [&](int64_t b, int64_t g) { return (b * a.kv_heads + g) * at.chunks * group; };
        int64_t tasks = 0;
        for (int64_t b = 0; b < a.batch; ++b) tasks += a.kv_heads * chunks_of(mask.row(b, 0)).size();
        parallel_for(tasks, 1, [&](int64_t begin, int64_t end, int thread) {
          float* q = Workspace::at<float>(own(thread), at.q);
          float* scores = Workspace::at<float>(own(thread), at.scores);
          int64_t task = 0;
          for (int64_t b = 0; b < a.batch; ++b) {
            const KeyRange keys = mask.row(b, 0), chunks = chunks_of(keys);
            for (int64_t g = 0; g < a.kv_heads; ++g)
              for (int64_t c = chunks.begin; c < chunks.end; ++c, ++task) {
                if (task < begin || task >= end) continue;
                const int64_t first = std::max(keys.begin, c * kChunk),
                              count = std::min(keys.end, (c + 1) * kChunk) - first,
                              to = place(b, g) + c * group;
                convert(a.type, DType::kF32, false, row_of(call.in, 0, a.q_at(b, g * group, 0)), q,
                        group * dim);
                DecodeRows rows{a.type, row_of(call.in, 1, a.k_at(b, g, first)), a.kv_ld, count, dim, group};
                CAIRN_DISPATCH(decode_dots_dispatch)(rows, q, scores);
                for (int64_t i = 0; i < group; ++i) {
                  const ScoreRow row{{0, count}, count, a.scale, a.softcap, nullptr, 0, nullptr, DType::kF32};
                  lse[to + i] = score_row(row, scores + i * kChunk, scores + i * kChunk);
                }
                rows.rows = row_of(call.in, 2, a.v_at(b, g, first));
                CAIRN_DISPATCH(decode_sums_dispatch)(rows, scores, sums + to * dim);
              }
          }
        });
        float* const to_lse = output<float>(call, 1);
        parallel_for(a.batch * a.heads, 8, [&](int64_t begin, int64_t end, int thread) {
          float* y = Workspace::at<float>(own(thread), at.q);
          for (int64_t row = begin; row < end; ++row) {
            const int64_t b = row / a.heads, h = row % a.heads, from = place(b, h / group) + h % group;
            const float* sink = mask.sinks() == nullptr ? nullptr : mask.sinks() + h;
            const float sum =
                put_together(a, chunks_of(mask.row(b, 0)), lse + from, sums + from * dim, group, sink, y);
            if (to_lse != nullptr) to_lse[row] = sum;
            convert(DType::kF32, a.type, false, y, row_of(call.out, 0, a.y_at(b, h, 0)), dim);
          }
        });
      },
      at.space.bytes());
}

}  // namespace cairn::kernels::cpu
#endif
