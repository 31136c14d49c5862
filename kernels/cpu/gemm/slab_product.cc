#include <algorithm>

#include "kernels/cpu/gemm/float_product.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kSlabBytes = 4 << 20;
// Blocks of C inside and at an edge stay what they are, whatever multiplies.
constexpr int64_t kSlabUnit = 96;
// Columns of C that a thread decodes at once for few rows: as many as dot products take.
constexpr int64_t kFewColumns = 4;

}  // namespace

SlabProduct::SlabProduct(const ProductShape& s, const TensorDesc& weight, DType compute, int threads)
    : shape_(s),
      weight_(weight, compute),
      dots_(s.transpose_b && !s.transpose_a && s.m <= kSmallRows && s.k >= kMinDots) {
  if (shape_.lda == 0) shape_.lda = s.transpose_a ? s.m : s.k;
  if (shape_.ldc == 0) shape_.ldc = s.n;
  if (dots_) {
    columns_ = kFewColumns;
    each_ = align_up(kFewColumns * s.k * 4, kAlignment);
    decoded_at_ = space_.add(threads * each_);
    return;
  }
  columns_ = std::min(s.n, std::max<int64_t>(1, kSlabBytes / (4 * s.k) / kSlabUnit) * kSlabUnit);
  decoded_at_ = space_.add(columns_ * s.k * 4);
  ProductShape slab = shape_;
  slab.ldb = 0;
  const bool tiles = worth_splitting(s);
  slab.n = columns_;
  slab_.emplace(slab, threads, tiles);
  if (slab.n = s.n % columns_; slab.n > 0) rest_.emplace(slab, threads, tiles);
  scratch_at_ = space_.add(std::max(slab_->scratch_bytes(), rest_ ? rest_->scratch_bytes() : 0));
}

void SlabProduct::run(const float* a, const void* weight, float* c, void* scratch, const float* bias) const {
  if (dots_) return few_rows(a, weight, c, scratch, bias);
  float* const decoded = Workspace::at<float>(scratch, decoded_at_);
  const ProductShape& s = shape_;
  for (int64_t j = 0; j < s.n; j += columns_) {
    const int64_t columns = std::min(columns_, s.n - j);
    // Rows of what is decoded: of B transposed a column each, else a step of k each.
    const int64_t rows = s.transpose_b ? columns : s.k, length = s.transpose_b ? s.k : columns,
                  pitch = s.transpose_b ? s.k : s.n, first = s.transpose_b ? j * s.k : j;
    parallel_for(rows, std::max<int64_t>(1, 8192 / length), [&](int64_t b, int64_t e, int) {
      weight_.read(weight, first + b * pitch, pitch, e - b, length, decoded + b * length);
    });
    (columns == columns_ ? slab_ : rest_)
        ->run(a, decoded, c + j, Workspace::at<char>(scratch, scratch_at_),
              bias != nullptr ? bias + j : nullptr);
  }
}

void SlabProduct::few_rows(const float* a, const void* weight, float* c, void* scratch,
                           const float* bias) const {
  const ProductShape& s = shape_;
  parallel_for((s.n + columns_ - 1) / columns_, 1, [&](int64_t begin, int64_t end, int thread) {
    float* const mine = Workspace::at<float>(scratch, decoded_at_ + thread * each_);
    for (int64_t j = begin * columns_; j < std::min(s.n, end * columns_); j += columns_) {
      GemmBlock g{};
      g.m1 = s.m, g.n1 = std::min(columns_, s.n - j), g.k = g.whole_k = s.k;
      weight_.read(weight, j * s.k, s.k, g.n1, s.k, mine);
      g.a = a, g.a_row = s.lda, g.a_step = 1;
      g.b = mine, g.b_step = 1, g.b_column = s.k;
      g.c = c + j, g.ldc = s.ldc;
      g.bias = s.bias && bias != nullptr ? bias + j : nullptr;
      g.add = s.add;
      g.dots = true;
      gemm_block(g);
    }
  });
}

}  // namespace cairn::kernels::cpu
