// Products of rows that are grouped by expert, in float32: on the AMX tiles where an expert has enough rows, else
// blocked for caches. Activations of 16 bits are widened in the workspace, weights of 16 bits by each thread, a block
// at a time.
#include <algorithm>

#include "kernels/cpu/experts/grouped.h"
#include "kernels/cpu/gemm/float_product.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/widened.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {
namespace {

// Columns of y, or rows of a weight's gradient, that one thread makes at least: full tiles, whatever multiplies.
constexpr int64_t kBlock = 96;
// What is done with the weights of a block takes as long as multiplying them by so many rows.
constexpr int64_t kRowsOfPacking = 16;

// Every expert splits rows and weights of its own, for a product of m x n: few operands beside what is done with them.
bool splits_little(int64_t m, int64_t n) { return m * n >= 400 * (m + n); }

// A product on the calling thread that is a block of an expert's. How it is made follows from the expert's product, so
// that bits do not depend on the block.
struct BlockOf {
  bool tiles, pack_a;

  explicit BlockOf(const ProductShape& whole)
      : tiles(worth_splitting(whole) && splits_little(whole.m, whole.n)),
        pack_a(whole.transpose_a || gemm_packs_rows(whole.n)) {}
  void run(const ProductShape& s, const float* a, const float* b, float* c, void* scratch,
           const float* bias) const {
    if (tiles) return SplitProduct(s, 1).run(a, b, c, scratch, bias);
    GemmBlock g{};
    g.m1 = s.m, g.n1 = s.n, g.k = g.whole_k = s.k;
    g.a = a, g.a_row = s.transpose_a ? 1 : s.lda, g.a_step = s.transpose_a ? s.lda : 1;
    g.b = b, g.b_step = s.transpose_b ? 1 : s.ldb, g.b_column = s.transpose_b ? s.ldb : 1;
    g.c = c, g.ldc = s.ldc;
    g.bias = s.bias ? bias : nullptr;
    g.add = s.add;
    g.pack_a = pack_a;
    g.dots = s.transpose_b && !s.transpose_a && s.m <= kSmallRows && s.k >= kMinDots;
    g.scratch = static_cast<float*>(scratch);
    gemm_block(g);
  }
};

// Bytes for a thread that makes products of this shape and of smaller ones.
int64_t most_scratch(const ProductShape& whole) {
  int64_t most = 0;
  ProductShape s = whole;
  s.parts_a = s.parts_b = 3;
  // The shorter side of a product is packed as one, and deeper products are made in blocks of at most so many steps.
  for (const int64_t m : {whole.m, std::min(whole.m, whole.n)})
    for (const int64_t depth : {whole.k, kMaxDepth, kMaxPackedDepth}) {
      s.m = m, s.k = std::min(whole.k, depth);
      most = std::max(most, gemm_scratch_bytes(s.m, s.k, s.transpose_a || gemm_packs_rows(s.n)));
      if (has_amx()) most = std::max(most, SplitProduct(s, 1).scratch_bytes());
    }
  return align_up(most, kAlignment);
}

// y[rows, n] = x[rows, k] B of each expert. by_columns: B is stored as [n, k], else as [k, n].
std::unique_ptr<Kernel> make_grouped(const Signature& s, int64_t n, int64_t k, bool by_columns,
                                     Besides besides) {
  if (!fast_float(s.in[0]) || !float_weight(s.in[1], s.in[0].dtype) || s.out[0].dtype != s.in[0].dtype)
    return nullptr;
  const bool bias = besides.bias >= 0 && s.has_in(static_cast<size_t>(besides.bias));
  if (bias && !plain_f32(s.in[static_cast<size_t>(besides.bias)])) return nullptr;
  const experts::Grouped z(s, s.in[1]);
  const WeightRows weight(s.in[1], s.in[0].dtype);
  Workspace space;
  const Widened x(s.in[0], &space), y(s.out[0], &space);
  const int parts = x.parts(), parts_of_weight = weight_parts(s.in[1]);
  const auto shape = [=](int64_t rows) {
    return ProductShape{.m = rows,
                        .n = n,
                        .k = k,
                        .transpose_b = by_columns,
                        .lda = k,
                        .ldb = by_columns ? k : n,
                        .ldc = n,
                        .bias = bias,
                        .parts_a = parts,
                        .parts_b = parts_of_weight};
  };
  const int64_t each = most_scratch(shape(z.rows)), scratch_at = space.add(s.threads * each),
                widened = weight.plain() ? 0 : align_up(kBlock * k * 4, kAlignment),
                widened_at = space.add(s.threads * widened);
  return make_kernel(
      [=](const Call& call) {
        void* ws = call.workspace;
        const float *wide_x = x.read(data_of(call.in, 0), ws),
                    *b = bias ? input<const float>(call, static_cast<size_t>(besides.bias)) : nullptr;
        float* wide_y = y.target(data_of(call.out, 0), ws);
        for_experts(input<const int32_t>(call, 2), z, (n + kBlock - 1) / kBlock, kRowsOfPacking, 0,
                    [&](int64_t e, experts::Rows rows, int64_t b0, int64_t b1, int thread) {
                      ProductShape part = shape(rows.end - rows.begin);
                      const BlockOf how(part);
                      float* mine = Workspace::at<float>(ws, widened_at + thread * widened);
                      const int64_t step = weight.plain() ? b1 - b0 : 1;
                      for (int64_t block = b0; block < b1; block += step) {
                        const int64_t n0 = block * kBlock, n1 = std::min(n, (block + step) * kBlock);
                        const int64_t first = e * n * k + n0 * (by_columns ? k : 1);
                        part.n = n1 - n0;
                        if (!weight.plain()) {
                          part.ldb = by_columns ? k : part.n;
                          weight.read(data_of(call.in, 1), first, by_columns ? k : n, by_columns ? part.n : k,
                                      part.ldb, mine);
                        }
                        how.run(part, wide_x + rows.begin * k,
                                weight.plain() ? input<const float>(call, 1) + first : mine,
                                wide_y + rows.begin * n + n0,
                                Workspace::at<char>(ws, scratch_at + thread * each),
                                b != nullptr ? b + (z.first + e) * n + n0 : nullptr);
                      }
                    });
        carry_rows(call, besides, z);
        const experts::Rows own = z.own(input<const int32_t>(call, 2));
        y.finish(data_of(call.out, 0), ws, own.begin * n, std::max(own.begin, own.end) * n);
      },
      space.bytes());
}

}  // namespace

std::unique_ptr<Kernel> make_grouped_linear_f32(const Signature& s) {
  const experts::Grouped z(s, s.in[1]);
  return make_grouped(s, z.n, z.k, !z.transposed, kOfForward);
}
std::unique_ptr<Kernel> make_grouped_linear_grad_input_f32(const Signature& s) {
  const experts::Grouped z(s, s.in[1]);
  return make_grouped(s, z.k, z.n, z.transposed, kOfInput);
}

// dw[m, n] of each expert: columns of dy by columns of x, or, stored the other way round, of x by dy.
std::unique_ptr<Kernel> make_grouped_linear_grad_weight_f32(const Signature& s) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != s.in[0].dtype || !plain_f32(s.out[0])) return nullptr;
  const experts::Grouped z(s, s.out[0]);
  const int64_t m = z.transposed ? z.k : z.n, n = z.transposed ? z.n : z.k;
  Workspace space;
  const Widened x(s.in[0], &space), dy(s.in[1], &space);
  const int parts = x.parts();
  const auto shape = [=](int64_t rows) {
    return ProductShape{.m = m,
                        .n = n,
                        .k = rows,
                        .transpose_a = true,
                        .lda = m,
                        .ldb = n,
                        .ldc = n,
                        .parts_a = parts,
                        .parts_b = parts};
  };
  const int64_t each = most_scratch(shape(z.rows)), scratch_at = space.add(s.threads * each);
  return make_kernel(
      [=](const Call& call) {
        void* ws = call.workspace;
        const auto* starts = input<const int32_t>(call, 2);
        const float *wide_x = x.read(data_of(call.in, 0), ws), *wide_dy = dy.read(data_of(call.in, 1), ws),
                    *left = z.transposed ? wide_x : wide_dy, *right = z.transposed ? wide_dy : wide_x;
        float* dw = output<float>(call, 0);
        const bool add = accumulates(call, 0);
        for_experts(starts, z, (m + kBlock - 1) / kBlock, kRowsOfPacking, add ? 0 : kRowsOfPacking,
                    [&](int64_t e, experts::Rows rows, int64_t b0, int64_t b1, int thread) {
                      const int64_t m0 = b0 * kBlock, m1 = std::min(m, b1 * kBlock);
                      float* to = dw + e * m * n + m0 * n;
                      if (rows.begin >= rows.end) return std::fill(to, to + (m1 - m0) * n, 0.0f);
                      ProductShape part = shape(rows.end - rows.begin);
                      const BlockOf how(part);
                      part.m = m1 - m0, part.add = add;
                      how.run(part, left + rows.begin * m + m0, right + rows.begin * n, to,
                              Workspace::at<char>(ws, scratch_at + thread * each), nullptr);
                    });
        if (float* db = output<float>(call, 1))
          grouped_column_sums(DType::kF32, wide_dy, call.in[2], z, db, accumulates(call, 1));
      },
      space.bytes());
}

}  // namespace cairn::kernels::cpu
