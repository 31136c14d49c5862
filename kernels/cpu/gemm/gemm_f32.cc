#include "kernels/cpu/gemm/gemm_f32.h"

#include <algorithm>

#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/workspace.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels::cpu {
namespace {

int64_t units(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

}  // namespace

Product::Product(const ProductShape& s, int threads) : shape_(s) {
  if (shape_.lda == 0) shape_.lda = s.transpose_a ? s.m : s.k;
  if (shape_.ldb == 0) shape_.ldb = s.transpose_b ? s.k : s.n;
  if (shape_.ldc == 0) shape_.ldc = s.n;
  if (shape_.whole_k == 0) shape_.whole_k = s.k;
  // So many threads that each has more work than waking it takes, by rough rates of summing and of reading B.
  const double nk = static_cast<double>(s.n) * static_cast<double>(s.k);
  const double seconds = static_cast<double>(s.m) * nk / 5e10 + nk * 4 / 1e10;
  const auto most = static_cast<int64_t>(std::clamp<double>(seconds / 15e-6, 1, threads));
  // The grid whose cells cost least: steps of a tile's sums, and what every cell packs for itself.
  double least = 1e300;
  for (int64_t rows = 1; rows <= most; ++rows)
    for (int64_t columns = 1; rows * columns <= most; ++columns) {
      const double m = static_cast<double>(units(units(s.m, kRowUnit), rows) * kRowUnit);
      const double n = static_cast<double>(units(units(s.n, kColumnUnit), columns) * kColumnUnit);
      const bool packs = s.transpose_a || gemm_packs_rows(static_cast<int64_t>(n));
      const double cost = m * n / 32 + (packs ? m / 3 : 0) + n / 3;
      if (cost < least) least = cost, row_shares_ = rows, column_shares_ = columns, pack_a_ = packs;
    }
}

int64_t Product::scratch_bytes() const {
  const int64_t one = align_up(
      gemm_scratch_bytes(units(units(shape_.m, kRowUnit), row_shares_) * kRowUnit, shape_.whole_k, pack_a_),
      kAlignment);
  return one * row_shares_ * column_shares_;
}

void Product::run(const float* a, const float* b, float* c, void* scratch, const float* bias) const {
  const ProductShape& s = shape_;
  const int64_t each = scratch_bytes() / (row_shares_ * column_shares_);
  const int64_t row_units = units(s.m, kRowUnit), column_units = units(s.n, kColumnUnit);
  parallel_for(row_shares_ * column_shares_, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t cell = begin; cell < end; ++cell) {
      const int64_t i = cell / column_shares_, j = cell % column_shares_;
      GemmBlock g{};
      g.m0 = row_units * i / row_shares_ * kRowUnit;
      g.m1 = std::min(s.m, row_units * (i + 1) / row_shares_ * kRowUnit);
      g.n0 = column_units * j / column_shares_ * kColumnUnit;
      g.n1 = std::min(s.n, column_units * (j + 1) / column_shares_ * kColumnUnit);
      g.k = s.k;
      g.a = a, g.a_row = s.transpose_a ? 1 : s.lda, g.a_step = s.transpose_a ? s.lda : 1;
      g.b = b, g.b_step = s.transpose_b ? 1 : s.ldb, g.b_column = s.transpose_b ? s.ldb : 1;
      g.c = c, g.ldc = s.ldc;
      g.bias = s.bias ? bias : nullptr;
      g.add = s.add;
      g.whole_k = s.whole_k;
      g.pack_a = pack_a_;
      g.dots = s.transpose_b && !s.transpose_a && s.m <= kSmallRows && s.k >= kMinDots;
      g.scratch = Workspace::at<float>(scratch, cell * each);
      gemm_block(g);
    }
  });
}

}  // namespace cairn::kernels::cpu
