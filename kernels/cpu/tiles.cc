// Which ops compute rows that do not depend on each other, and how many rows a tile must have so that its bits are
// those of all rows at once.
#include <algorithm>
#include <numeric>
#include <string_view>

#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/gemm/float_product.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/long_sums.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

using Rule = int64_t (*)(const Signature& whole);

int64_t any_rows(const Signature&) { return 1; }

// Few rows are multiplied in another way in float32, and so are fewer than the tiles take.
int64_t product_rows(const Signature& s) {
  constexpr int64_t kLeastOnTiles = 256, kNotFew = 2 * kSmallRows;
  const int64_t m = s.in[0].shape.rows(), k = s.in[0].shape.last(), n = s.out[0].shape.last();
  if (!fast_float(s.in[0])) return 0;
  if (has_bf16_products() && is_bf16(s.in[0]) && is_bf16(s.out[0])) return 1;
  return worth_splitting({.m = m, .n = n, .k = k}) ? kLeastOnTiles : m > kSmallRows ? kNotFew : 0;
}

// dw = dy^T x: blocks of rows are summed and added to dw one after the other. A bias's gradient is summed by blocks
// of 64 rows.
int64_t weight_sum_rows(const Signature& s) {
  constexpr int64_t kBiasRows = 64;
  const int64_t rows = s.in[0].shape.rows(), k = s.in[0].shape.last(), n = s.in[1].shape.last();
  if (!fast_float(s.in[0]) || s.in[1].dtype != s.in[0].dtype || (s.has_out(1) && sums_by_blocks(rows)))
    return 0;
  const int64_t bias = s.has_out(1) ? kBiasRows : 1;
  if (has_bf16_products() && is_bf16(s.in[0])) return std::lcm(bias, bf16_block_depth(rows, k));
  const bool on_tiles = worth_splitting({.m = n, .n = k, .k = rows});
  return std::lcm(bias, on_tiles ? SplitProduct::block_depth(rows) : gemm_block_depth(rows, true));
}

// Each thread sums rows of its own for the gradients of gamma and beta.
int64_t norm_gradient_rows(const Signature& s) { return s.has_out(1) || s.has_out(2) ? 0 : 1; }

// The random numbers of four elements come together.
int64_t dropout_rows(const Signature& s) {
  constexpr int64_t kTogether = 4;
  return kTogether / std::gcd(kTogether, s.in[0].shape.last());
}

struct Row {
  std::string_view op;
  Rule rows;
};
constexpr Row kTable[] = {
    {"linear", product_rows},
    {"linear_grad_input", product_rows},
    {"linear_grad_weight", weight_sum_rows},
    {"layernorm", any_rows},
    {"layernorm_grad", norm_gradient_rows},
    {"rmsnorm", any_rows},
    {"rmsnorm_grad", norm_gradient_rows},
#define UNARY(op, ...) {#op, any_rows}, {#op "_grad", any_rows},
#include "runtime/base/elementwise.def"
#define ARITHMETIC(op, ...) {#op, any_rows},
#include "runtime/base/arithmetic.def"
    {"swiglu", any_rows},
    {"swiglu_grad", any_rows},
    {"glu", any_rows},
    {"glu_grad", any_rows},
    {"scale", any_rows},
    {"cast", any_rows},
    {"dropout", dropout_rows},
    {"softmax", any_rows},
    {"softmax_grad", any_rows},
};

}  // namespace

int64_t tile_rows(const Signature& whole) {
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const Row& row) { return row.op == whole.op; });
  return found == std::end(kTable) ? 0 : found->rows(whole);
}

}  // namespace cairn::kernels::cpu
