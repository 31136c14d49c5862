// Attention in bfloat16, blocked as in f32.cc: scores and sums in float32,
// probabilities and their gradients rounded to bfloat16 for the next product.
#include <algorithm>
#include <memory>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {
namespace {

bool fits(const AttentionShape& a) { return a.type == DType::kBF16 && a.dim % kTileK == 0; }

// Keys of a block of rows, counted from the first key that any row sees, and at a full tile.
struct Block {
  int64_t rows, first, keys,
      steps;  // of keys: the first one, at a full tile; how many; rounded up to full tiles

  Block(const AttentionShape& a, const AttentionMask& mask, int64_t b, int64_t t, int64_t before)
      : rows(std::min(kQueryRows, a.length - t)) {
    const KeyRange seen = mask.block(b, t, t + rows);
    first = (seen.begin - before) / kTileK * kTileK;
    keys = seen.empty() ? 0 : seen.end - before - first;
    steps = round_up(keys, kTileK);
  }
};

// Offsets of one thread's buffers; `padded`: keys rounded up to full tiles; `width`: the most of them that a block has.
struct Buffers {
  Workspace space;
  int64_t padded, width, block;
  int64_t k_t, v, s, p, sums;
  int64_t k = 0, v_t = 0, dp = 0, ds = 0, transposed = 0, right = 0, dk = 0, dv = 0;

  Buffers(const AttentionShape& a, bool gradient)
      : padded(round_up(a.keys, kTileK)), block(std::min(kQueryRows, round_up(a.length, kTileK))) {
    width = std::min(padded, round_up(a.most_keys(block), kTileK) + kTileK);
    const int64_t head = packed_b_bytes(a.dim, a.keys);
    k_t = space.add(packed_b_bytes(a.keys, a.dim));
    v = space.add(head);
    s = space.add(block * width * 4);
    p = space.add(block * width * 2);
    sums = space.add(kQueryRows * kPanel * 4);
    if (!gradient) return;
    k = v;  // forward needs V by rows, backward K
    v_t = space.add(packed_b_bytes(a.keys, a.dim));
    dp = space.add(block * width * 4);
    ds = space.add(block * width * 2);
    transposed = space.add(packed_a_bytes(width, block));
    right = space.add(packed_b_bytes(a.dim, block));
    dk = space.add(padded * a.dim * 4);
    dv = space.add(padded * a.dim * 4);
  }
};

const bf16* operand(const Call& call, const AttentionShape& a, size_t first, size_t which) {
  return input<const bf16>(call, a.packed ? first : first + which);
}

// c[rows, panels * 32] = x[rows, dim] B
void scores(const AttentionShape& a, const bf16* x, int64_t ld, const bf16* b, int64_t rows, int64_t keys,
            float* c, int64_t ldc) {
  const int64_t n = round_up(keys, kPanel);
  bf16_gemm_f32(row_major(x, ld, b, a.dim), 0, rows, n, 0, panels(n), nullptr, c, ldc, false);
}

// Probabilities or their gradients [rows, steps], times what was packed of all keys, from the block's first one on.
GemmOperands of_keys(const bf16* x, int64_t ld, const bf16* packed, const Block& block, int64_t all) {
  GemmOperands product = row_major(x, ld, packed + block.first * kPanel, block.steps);
  product.b_panel = kPanel * round_up(all, kTileK);
  return product;
}

void clear_rows(bf16* to, int64_t ld, int64_t rows, int64_t dim) {
  for (int64_t r = 0; r < rows; ++r) std::fill(to + r * ld, to + r * ld + dim, bf16{});
}

}  // namespace

std::unique_ptr<Kernel> make_attention_bf16(const Signature& s) {
  const auto shape = attention_shape(s, 0);
  if (!has_bf16_products() || !shape || !fits(*shape)) return nullptr;
  const AttentionShape a = *shape;
  const Buffers at(a, false);
  const int64_t share = at.space.bytes(), length = a.length, dim = a.dim, ld = at.width;
  return make_kernel(
      [=](const Call& call) {
        const bf16 *q = operand(call, a, 0, 0), *k = operand(call, a, 0, 1), *v = operand(call, a, 0, 2);
        const AttentionMask mask(a, call);
        bf16* y = output<bf16>(call, 0);
        float* lse = output<float>(call, 1);
        parallel_for(a.batch * a.kv_heads, 1, [&](int64_t begin, int64_t end, int thread) {
          char* mine = static_cast<char*>(call.workspace) + thread * share;
          bf16 *k_t = Workspace::at<bf16>(mine, at.k_t), *packed_v = Workspace::at<bf16>(mine, at.v);
          float* sc = Workspace::at<float>(mine, at.s);
          bf16* p = Workspace::at<bf16>(mine, at.p);
          for (int64_t task = begin; task < end; ++task) {
            const int64_t b = task / a.kv_heads, g = task % a.kv_heads;
            const KeyRange all = mask.block(b, 0, length);
            const int64_t keys = std::max<int64_t>(0, all.size());
            pack_b_transposed(k + a.k_at(b, g, all.begin), a.kv_ld, keys, dim, k_t, 0, panels(keys));
            pack_b(v + a.v_at(b, g, all.begin), a.kv_ld, dim, keys, packed_v, 0, panels(dim));
            for (int64_t h = g * a.group(); h < (g + 1) * a.group(); ++h)
              for (int64_t t = 0; t < length; t += kQueryRows) {
                const Block block(a, mask, b, t, all.begin);
                const int64_t rows = block.rows;
                scores(a, q + a.q_at(b, h, t), a.q_ld, k_t + block.first * dim, rows, block.keys, sc, ld);
                for (int64_t r = 0; r < rows; ++r) {
                  const float sum =
                      score_row(mask.scores(b, h, t + r, all.begin + block.first, block.steps, DType::kBF16),
                                sc + r * ld, p + r * ld);
                  if (lse != nullptr) lse[a.lse_at(b, h, t + r)] = sum;
                }
                bf16* to = y + a.y_at(b, h, t);
                if (block.keys == 0) {
                  clear_rows(to, a.y_ld, rows, dim);
                  continue;
                }
                const LinearEpilogue store(Activation::kNone, nullptr, to, nullptr, a.y_ld);
                bf16_gemm(of_keys(p, ld, packed_v, block, keys), 0, rows, dim, 0, panels(dim),
                          Workspace::at<float>(mine, at.sums), store);
              }
          }
        });
      },
      share * s.threads);
}

std::unique_ptr<Kernel> make_attention_grad_bf16(const Signature& s) {
  const auto shape = attention_shape(s, 1);
  if (!has_bf16_products() || !shape || !fits(*shape)) return nullptr;
  const AttentionShape a = *shape;
  const Buffers at(a, true);
  const int64_t share = at.space.bytes(), length = a.length, dim = a.dim, ld = at.width, threads = s.threads;
  return make_kernel(
      [=](const Call& call) {
        const bf16 *q = operand(call, a, 1, 0), *k = operand(call, a, 1, 1), *v = operand(call, a, 1, 2);
        const bf16 *dy = input<const bf16>(call, 0), *y = input<const bf16>(call, 4);
        const AttentionMask mask(a, call);
        auto* sums_space = static_cast<char*>(call.workspace) + share * threads;
        SinkSums sinks(a, mask, call, sums_space);
        const DistanceSums distances(a, call,
                                     sums_space + (mask.sinks() == nullptr ? 0 : SinkSums::bytes(a)));
        const float* lse = input<const float>(call, 5);
        bf16* dq = output<bf16>(call, 0);
        bf16* to_k = a.packed ? dq : output<bf16>(call, 1);
        bf16* to_v = a.packed ? dq : output<bf16>(call, 2);
        parallel_for(a.batch * a.kv_heads, 1, [&](int64_t begin, int64_t end, int thread) {
          char* mine = static_cast<char*>(call.workspace) + thread * share;
          const auto half = [&](int64_t offset) { return Workspace::at<bf16>(mine, offset); };
          const auto wide = [&](int64_t offset) { return Workspace::at<float>(mine, offset); };
          bf16 *k_t = half(at.k_t), *v_t = half(at.v_t), *packed_k = half(at.k), *p = half(at.p),
               *ds = half(at.ds);
          bf16 *transposed = half(at.transposed), *right = half(at.right);
          float *sc = wide(at.s), *dp = wide(at.dp), *dk = wide(at.dk), *dv = wide(at.dv),
                *sums = wide(at.sums);
          for (int64_t task = begin; task < end; ++task) {
            const int64_t b = task / a.kv_heads, g = task % a.kv_heads;
            const KeyRange all = mask.block(b, 0, length);
            const int64_t keys = std::max<int64_t>(0, all.size());
            pack_b_transposed(k + a.k_at(b, g, all.begin), a.kv_ld, keys, dim, k_t, 0, panels(keys));
            pack_b_transposed(v + a.v_at(b, g, all.begin), a.kv_ld, keys, dim, v_t, 0, panels(keys));
            pack_b(k + a.k_at(b, g, all.begin), a.kv_ld, dim, keys, packed_k, 0, panels(dim));
            const int64_t sums_of_keys = round_up(keys, kTileK) * dim;
            std::fill(dk, dk + sums_of_keys, 0.0f);
            std::fill(dv, dv + sums_of_keys, 0.0f);
            for (int64_t h = g * a.group(); h < (g + 1) * a.group(); ++h)
              for (int64_t t = 0; t < length; t += kQueryRows) {
                const Block block(a, mask, b, t, all.begin);
                const int64_t rows = block.rows, deep = round_up(rows, kTileK);
                const bf16 *q_t = q + a.q_at(b, h, t), *dy_t = dy + a.y_at(b, h, t),
                           *y_t = y + a.y_at(b, h, t);
                if (block.keys == 0) {
                  if (dq != nullptr) clear_rows(dq + a.q_at(b, h, t), a.q_ld, rows, dim);
                  continue;
                }
                scores(a, q_t, a.q_ld, k_t + block.first * dim, rows, block.keys, sc, ld);
                scores(a, dy_t, a.y_ld, v_t + block.first * dim, rows, block.keys, dp, ld);
                for (int64_t r = 0; r < rows; ++r) {
                  const float delta = dot(DType::kBF16, dy_t + r * a.y_ld, y_t + r * a.y_ld, dim),
                              row_lse = lse[a.lse_at(b, h, t + r)];
                  sinks.add(b, h, row_lse, delta);
                  const int64_t first = all.begin + block.first;
                  const ScoreRow row = mask.scores(b, h, t + r, first, block.steps, DType::kBF16);
                  score_grad_row(distances.of(row, b, h, t + r, first), sc + r * ld, dp + r * ld, row_lse,
                                 delta, p + r * ld, ds + r * ld);
                }
                if (dq != nullptr) {
                  const LinearEpilogue store(Activation::kNone, nullptr, dq + a.q_at(b, h, t), nullptr,
                                             a.q_ld);
                  bf16_gemm(of_keys(ds, ld, packed_k, block, keys), 0, rows, dim, 0, panels(dim), sums,
                            store);
                }
                const auto add = [&](const bf16* left, const bf16* x, int64_t x_ld, float* to) {
                  pack_a_transposed(left, ld, block.steps, rows, transposed, 0, blocks_of_a(block.steps));
                  pack_b(x, x_ld, dim, rows, right, 0, panels(dim));
                  bf16_gemm_f32(in_blocks(transposed, right, deep), 0, block.steps, dim, 0, panels(dim),
                                nullptr, to + block.first * dim, dim, true);
                };
                add(ds, q_t, a.q_ld, dk);
                add(p, dy_t, a.y_ld, dv);
              }
            const auto put = [&](const float* from, bf16* to, int64_t t) {
              if (t < all.begin || t >= all.begin + keys)
                clear_rows(to, 0, 1, dim);  // no row sees it
              else
                convert(DType::kF32, DType::kBF16, false, from + (t - all.begin) * dim, to, dim);
            };
            for (int64_t t = 0; t < a.keys; ++t) {
              if (to_k != nullptr) put(dk, to_k + a.k_at(b, g, t), t);
              if (to_v != nullptr) put(dv, to_v + a.v_at(b, g, t), t);
            }
          }
        });
        sinks.store();
        distances.store();
      },
      share * s.threads + sums_bytes(a, s));
}

}  // namespace cairn::kernels::cpu
