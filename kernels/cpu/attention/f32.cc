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

// use(row) for a head's row of each position of a strided tensor. These lie a page or more apart, which no processor
// foresees: a row is fetched while those before it are used.
template <class Byte, class Use>
void for_rows(const AttentionShape& a, Byte* base, int64_t at, int64_t ld, const Use& use) {
  constexpr int64_t kAhead = 8;
  const int64_t bytes = dtype_bytes(a.type), row = a.dim * bytes;
  const auto fetch = [&](int64_t t) {
    for (int64_t i = 0; i < row; i += 64)
      __builtin_prefetch(base + (at + t * ld) * bytes + i, !std::is_const_v<Byte>);
  };
  for (int64_t t = 0; t < std::min(kAhead, a.length); ++t) fetch(t);
  for (int64_t t = 0; t < a.length; ++t) {
    if (t + kAhead < a.length) fetch(t + kAhead);
    use(t, base + (at + t * ld) * bytes);
  }
}

// One head of a strided tensor to or from dense float32 [length, dim].
void gather(const AttentionShape& a, const void* from, int64_t at, int64_t ld, float* to) {
  const size_t row = static_cast<size_t>(a.dim) * 4;
  for_rows(a, static_cast<const char*>(from), at, ld, [&](int64_t t, const char* x) {
    if (a.type == DType::kF32)
      std::memcpy(to + t * a.dim, x, row);
    else
      convert(a.type, DType::kF32, false, x, to + t * a.dim, a.dim);
  });
}
void scatter(const AttentionShape& a, const float* from, void* to, int64_t at, int64_t ld) {
  const size_t row = static_cast<size_t>(a.dim) * 4;
  for_rows(a, static_cast<char*>(to), at, ld, [&](int64_t t, char* y) {
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

// Offsets of one thread's buffers.
struct Buffers {
  Workspace space;
  int64_t q, k, v, o, y, dq, dk, dv, k_t, v_t, s, dp;

  Buffers(const AttentionShape& a, bool gradient) {
    const int64_t head = a.length * a.dim * 4, scores = std::min(kQueryRows, a.length) * a.length * 4;
    for (int64_t* at : {&q, &k, &v, &o, &k_t}) *at = space.add(head);
    s = space.add(scores);
    if (!gradient) return;
    for (int64_t* at : {&y, &dq, &dk, &dv, &v_t}) *at = space.add(head);
    dp = space.add(scores);
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
  const int64_t share = at.space.bytes(), length = a.length, dim = a.dim;
  return make_kernel(
      [=](const Call& call) {
        const Pointers from = pointers(call, a, 0);
        float* lse = output<float>(call, 1);
        parallel_for(a.batch * a.kv_heads, 1, [&](int64_t begin, int64_t end, int thread) {
          char* mine = static_cast<char*>(call.workspace) + thread * share;
          const auto buffer = [&](int64_t offset) { return Workspace::at<float>(mine, offset); };
          float *q = buffer(at.q), *k = buffer(at.k), *v = buffer(at.v), *o = buffer(at.o),
                *k_t = buffer(at.k_t);
          float* scores = buffer(at.s);
          for (int64_t task = begin; task < end; ++task) {
            const int64_t b = task / a.kv_heads, g = task % a.kv_heads;
            gather(a, from.k, a.k_at(b, g, 0), a.kv_ld, k);
            gather(a, from.v, a.v_at(b, g, 0), a.kv_ld, v);
            transpose(k, length, dim, k_t);
            for (int64_t h = g * a.group(); h < (g + 1) * a.group(); ++h) {
              gather(a, from.q, a.q_at(b, h, 0), a.q_ld, q);
              for (int64_t t = 0; t < length; t += kQueryRows) {
                const int64_t rows = std::min(kQueryRows, length - t), keys = a.keys(t + rows);
                small_gemm({rows, keys, dim, q + t * dim, dim, 1, k_t, length, scores, length, false});
                for (int64_t r = 0; r < rows; ++r) {
                  float* row = scores + r * length;
                  const float sum = score_row(row, a.visible(t + r), keys, a.scale, DType::kF32, row);
                  if (lse != nullptr) lse[a.lse_at(b, h, t + r)] = sum;
                }
                small_gemm({rows, dim, keys, scores, length, 1, v, dim, o + t * dim, dim, false});
              }
              scatter(a, o, data_of(call.out, 0), a.y_at(b, h, 0), a.y_ld);
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
  const int64_t share = at.space.bytes(), length = a.length, dim = a.dim;
  return make_kernel(
      [=](const Call& call) {
        const Pointers from = pointers(call, a, 1);
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
            gather(a, from.k, a.k_at(b, g, 0), a.kv_ld, k);
            gather(a, from.v, a.v_at(b, g, 0), a.kv_ld, v);
            transpose(k, length, dim, k_t);
            transpose(v, length, dim, v_t);
            std::fill(dk, dk + length * dim, 0.0f);
            std::fill(dv, dv + length * dim, 0.0f);
            for (int64_t h = g * a.group(); h < (g + 1) * a.group(); ++h) {
              gather(a, from.q, a.q_at(b, h, 0), a.q_ld, q);
              gather(a, data_of(call.in, 0), a.y_at(b, h, 0), a.y_ld, d_o);
              gather(a, data_of(call.in, 4), a.y_at(b, h, 0), a.y_ld, y);
              for (int64_t t = 0; t < length; t += kQueryRows) {
                const int64_t rows = std::min(kQueryRows, length - t), keys = a.keys(t + rows);
                const float *q_t = q + t * dim, *do_t = d_o + t * dim;
                small_gemm({rows, keys, dim, q_t, dim, 1, k_t, length, scores, length, false});
                small_gemm({rows, keys, dim, do_t, dim, 1, v_t, length, dp, length, false});
                for (int64_t r = 0; r < rows; ++r) {
                  float *p = scores + r * length, *ds = dp + r * length;
                  const float delta = dot(DType::kF32, do_t + r * dim, y + (t + r) * dim, dim);
                  score_grad_row(p, ds, a.visible(t + r), keys, a.scale, lse[a.lse_at(b, h, t + r)], delta,
                                 DType::kF32, p, ds);
                }
                small_gemm({rows, dim, keys, dp, length, 1, k, dim, dq + t * dim, dim, false});
                small_gemm({keys, dim, rows, dp, 1, length, q_t, dim, dk, dim, true});
                small_gemm({keys, dim, rows, scores, 1, length, do_t, dim, dv, dim, true});
              }
              if (to_q != nullptr) scatter(a, dq, to_q, a.q_at(b, h, 0), a.q_ld);
            }
            if (to_k != nullptr) scatter(a, dk, to_k, a.k_at(b, g, 0), a.kv_ld);
            if (to_v != nullptr) scatter(a, dv, to_v, a.v_at(b, g, 0), a.kv_ld);
          }
        });
      },
      share * s.threads);
}

}  // namespace cairn::kernels::cpu
