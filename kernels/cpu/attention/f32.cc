// Attention with float32 products, after "FlashAttention-2" (Dao, 2023) without its running maximum: a block
// of query rows sees all its keys at once. Takes bfloat16 operands, too: heads are copied to float32 first. A
// thread owns (sequence, key head) pairs, so every sum has one owner and a fixed order.
#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm/small_gemm.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {
namespace {

// use(row) for a head's rows of so many positions of a strided tensor. These lie a page or more apart, which no
// processor foresees: a row is fetched while those before it are used.
template <class Byte, class Use>
void for_rows(const AttentionShape& a, Byte* base, int64_t at, int64_t ld, int64_t count, const Use& use) {
  constexpr int64_t kAhead = 8;
  const int64_t bytes = dtype_bytes(a.type), row = a.dim * bytes;
  const auto fetch = [&](int64_t t) {
    for (int64_t i = 0; i < row; i += 64)
      __builtin_prefetch(base + (at + t * ld) * bytes + i, !std::is_const_v<Byte>);
  };
  for (int64_t t = 0; t < std::min(kAhead, count); ++t) fetch(t);
  for (int64_t t = 0; t < count; ++t) {
    if (t + kAhead < count) fetch(t + kAhead);
    use(t, base + (at + t * ld) * bytes);
  }
}

// Rows of one head of a strided tensor to or from dense float32 [count, dim].
void gather(const AttentionShape& a, const void* from, int64_t at, int64_t ld, int64_t count, float* to) {
  const size_t row = static_cast<size_t>(a.dim) * 4;
  for_rows(a, static_cast<const char*>(from), at, ld, count, [&](int64_t t, const char* x) {
    if (a.type == DType::kF32)
      std::memcpy(to + t * a.dim, x, row);
    else
      convert(a.type, DType::kF32, false, x, to + t * a.dim, a.dim);
  });
}
void scatter(const AttentionShape& a, const float* from, void* to, int64_t at, int64_t ld, int64_t count) {
  const size_t row = static_cast<size_t>(a.dim) * 4;
  for_rows(a, static_cast<char*>(to), at, ld, count, [&](int64_t t, char* y) {
    if (a.type == DType::kF32)
      std::memcpy(y, from + t * a.dim, row);
    else
      convert(DType::kF32, a.type, false, from + t * a.dim, y, a.dim);
  });
}
void transpose(const float* x, int64_t rows, int64_t columns, float* y) {
  constexpr int64_t kBlock = 16;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = i0; i < std::min(rows, i0 + kBlock); ++i) y[j * rows + i] = x[i * columns + j];
}

// Keys of a block of rows, counted from the first key that any row sees, and at a multiple of kKeyStep.
constexpr int64_t kKeyStep = 16;
struct Block {
  int64_t rows, first, keys;  // of keys, the first and how many

  Block(const AttentionShape& a, const AttentionMask& mask, int64_t b, int64_t t, int64_t before)
      : rows(std::min(kQueryRows, a.length - t)) {
    const KeyRange seen = mask.block(b, t, t + rows);
    first = (seen.begin - before) / kKeyStep * kKeyStep;
    keys = seen.empty() ? 0 : seen.end - before - first;
  }
};

// Offsets of one thread's buffers. width: the most keys of a block.
struct Buffers {
  Workspace space;
  int64_t width, q, k, v, o, y, dq, dk, dv, k_t, v_t, s, dp;

  Buffers(const AttentionShape& a, bool gradient) {
    const int64_t of_rows = a.length * a.dim * 4, of_keys = a.keys * a.dim * 4,
                  block = std::min(kQueryRows, a.length);
    width = std::min(a.keys, a.most_keys(block) + kKeyStep);
    q = space.add(of_rows);
    for (int64_t* at : {&k, &v}) *at = space.add(of_keys);
    o = space.add(of_rows);
    k_t = space.add(of_keys);
    s = space.add(block * width * 4);
    if (!gradient) return;
    for (int64_t* at : {&y, &dq}) *at = space.add(of_rows);
    for (int64_t* at : {&dk, &dv, &v_t}) *at = space.add(of_keys);
    dp = space.add(block * width * 4);
  }
};

struct Pointers {
  const void *q, *k, *v;
};
Pointers pointers(const Call& call, const AttentionShape& a, size_t first) {
  const void* q = data_of(call.in, first);
  return {q, a.packed ? q : data_of(call.in, first + 1), a.packed ? q : data_of(call.in, first + 2)};
}

}  // namespace

std::unique_ptr<Kernel> make_attention_f32(const Signature& s) {
  const auto shape = attention_shape(s, 0);
  if (!shape) return nullptr;
  const AttentionShape a = *shape;
  const Buffers at(a, false);
  const int64_t share = at.space.bytes(), length = a.length, dim = a.dim, width = at.width;
  return make_kernel(
      [=](const Call& call) {
        const Pointers from = pointers(call, a, 0);
        const AttentionMask mask(a, call);
        float* lse = output<float>(call, 1);
        parallel_for(a.batch * a.kv_heads, 1, [&](int64_t begin, int64_t end, int thread) {
          char* mine = static_cast<char*>(call.workspace) + thread * share;
          const auto buffer = [&](int64_t offset) { return Workspace::at<float>(mine, offset); };
          float *q = buffer(at.q), *k = buffer(at.k), *v = buffer(at.v), *o = buffer(at.o),
                *k_t = buffer(at.k_t);
          float* scores = buffer(at.s);
          for (int64_t task = begin; task < end; ++task) {
            const int64_t b = task / a.kv_heads, g = task % a.kv_heads;
            const KeyRange all = mask.block(b, 0, length);
            const int64_t keys = std::max<int64_t>(0, all.size());
            gather(a, from.k, a.k_at(b, g, all.begin), a.kv_ld, keys, k);
            gather(a, from.v, a.v_at(b, g, all.begin), a.kv_ld, keys, v);
            transpose(k, keys, dim, k_t);
            for (int64_t h = g * a.group(); h < (g + 1) * a.group(); ++h) {
              gather(a, from.q, a.q_at(b, h, 0), a.q_ld, length, q);
              for (int64_t t = 0; t < length; t += kQueryRows) {
                const Block block(a, mask, b, t, all.begin);
                const int64_t rows = block.rows;
                small_gemm({rows, block.keys, dim, q + t * dim, dim, 1, k_t + block.first, keys, scores,
                            width, false});
                for (int64_t r = 0; r < rows; ++r) {
                  float* row = scores + r * width;
                  const float sum = score_row(
                      mask.scores(b, h, t + r, all.begin + block.first, block.keys, DType::kF32), row, row);
                  if (lse != nullptr) lse[a.lse_at(b, h, t + r)] = sum;
                }
                small_gemm({rows, dim, block.keys, scores, width, 1, v + block.first * dim, dim, o + t * dim,
                            dim, false});
              }
              scatter(a, o, data_of(call.out, 0), a.y_at(b, h, 0), a.y_ld, length);
            }
          }
        });
      },
      share * s.threads);
}

std::unique_ptr<Kernel> make_attention_grad_f32(const Signature& s) {
  const auto shape = attention_shape(s, 1);
  if (!shape) return nullptr;
  const AttentionShape a = *shape;
  const Buffers at(a, true);
  const int64_t share = at.space.bytes(), length = a.length, dim = a.dim, width = at.width,
                threads = s.threads;
  return make_kernel(
      [=](const Call& call) {
        const Pointers from = pointers(call, a, 1);
        const AttentionMask mask(a, call);
        auto* sums_space = static_cast<char*>(call.workspace) + share * threads;
        SinkSums sinks(a, mask, call, sums_space);
        const DistanceSums distances(a, call,
                                     sums_space + (mask.sinks() == nullptr ? 0 : SinkSums::bytes(a)));
        const float* lse = input<const float>(call, 5);
        void* to_q = data_of(call.out, 0);
        void* to_k = a.packed ? to_q : data_of(call.out, 1);
        void* to_v = a.packed ? to_q : data_of(call.out, 2);
        parallel_for(a.batch * a.kv_heads, 1, [&](int64_t begin, int64_t end, int thread) {
          char* mine = static_cast<char*>(call.workspace) + thread * share;
          const auto buffer = [&](int64_t offset) { return Workspace::at<float>(mine, offset); };
          float *q = buffer(at.q), *k = buffer(at.k), *v = buffer(at.v), *d_o = buffer(at.o),
                *y = buffer(at.y);
          float *dq = buffer(at.dq), *dk = buffer(at.dk), *dv = buffer(at.dv);
          float *k_t = buffer(at.k_t), *v_t = buffer(at.v_t), *scores = buffer(at.s), *dp = buffer(at.dp);
          for (int64_t task = begin; task < end; ++task) {
            const int64_t b = task / a.kv_heads, g = task % a.kv_heads;
            const KeyRange all = mask.block(b, 0, length);
            const int64_t keys = std::max<int64_t>(0, all.size());
            gather(a, from.k, a.k_at(b, g, all.begin), a.kv_ld, keys, k);
            gather(a, from.v, a.v_at(b, g, all.begin), a.kv_ld, keys, v);
            transpose(k, keys, dim, k_t);
            transpose(v, keys, dim, v_t);
            // Keys that no row sees have no gradient.
            std::fill(dk, dk + a.keys * dim, 0.0f);
            std::fill(dv, dv + a.keys * dim, 0.0f);
            for (int64_t h = g * a.group(); h < (g + 1) * a.group(); ++h) {
              gather(a, from.q, a.q_at(b, h, 0), a.q_ld, length, q);
              gather(a, data_of(call.in, 0), a.y_at(b, h, 0), a.y_ld, length, d_o);
              gather(a, data_of(call.in, 4), a.y_at(b, h, 0), a.y_ld, length, y);
              for (int64_t t = 0; t < length; t += kQueryRows) {
                const Block block(a, mask, b, t, all.begin);
                const int64_t rows = block.rows, first = block.first;
                const float *q_t = q + t * dim, *do_t = d_o + t * dim;
                small_gemm({rows, block.keys, dim, q_t, dim, 1, k_t + first, keys, scores, width, false});
                small_gemm({rows, block.keys, dim, do_t, dim, 1, v_t + first, keys, dp, width, false});
                for (int64_t r = 0; r < rows; ++r) {
                  float *p = scores + r * width, *ds = dp + r * width;
                  const float delta = dot(DType::kF32, do_t + r * dim, y + (t + r) * dim, dim),
                              row_lse = lse[a.lse_at(b, h, t + r)];
                  sinks.add(b, h, row_lse, delta);
                  const ScoreRow row = mask.scores(b, h, t + r, all.begin + first, block.keys, DType::kF32);
                  score_grad_row(distances.of(row, b, h, t + r, all.begin + first), p, ds, row_lse, delta, p,
                                 ds);
                }
                float *own_k = dk + (all.begin + first) * dim, *own_v = dv + (all.begin + first) * dim;
                small_gemm(
                    {rows, dim, block.keys, dp, width, 1, k + first * dim, dim, dq + t * dim, dim, false});
                small_gemm({block.keys, dim, rows, dp, 1, width, q_t, dim, own_k, dim, true});
                small_gemm({block.keys, dim, rows, scores, 1, width, do_t, dim, own_v, dim, true});
              }
              if (to_q != nullptr) scatter(a, dq, to_q, a.q_at(b, h, 0), a.q_ld, length);
            }
            if (to_k != nullptr) scatter(a, dk, to_k, a.k_at(b, g, 0), a.kv_ld, a.keys);
            if (to_v != nullptr) scatter(a, dv, to_v, a.v_at(b, g, 0), a.kv_ld, a.keys);
          }
        });
        sinks.store();
        distances.store();
      },
      share * s.threads + sums_bytes(a, s));
}

}  // namespace cairn::kernels::cpu
