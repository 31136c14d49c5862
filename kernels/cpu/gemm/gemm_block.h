// One thread's part of a float32 product (gemm_f32.h): a rectangle of C.
#pragma once
#include <algorithm>
#include <cstdint>

namespace cairn::kernels::cpu {

// Blocks of C in registers have sizes that divide these, whatever the instruction set.
inline constexpr int64_t kRowUnit = 8, kColumnUnit = 48;
// Steps of k that are summed in registers before they are added to C, at most; where A is packed, fewer.
inline constexpr int64_t kMaxDepth = 768, kMaxPackedDepth = 384;
// Rows of A that are kept in the second cache while the panels of B are multiplied: in place, or packed.
inline constexpr int64_t kRows = 512, kPackedRows = 512;
// At most so many rows of A are multiplied as dot products with the rows of a transposed B, which then need
// not be packed; sums of a few products are not worth it.
inline constexpr int64_t kSmallRows = 16, kMinDots = 64;

// `n` in the fewest shares of at most `most`, as even as units allow: the length of one.
inline int64_t even_share(int64_t n, int64_t most, int64_t unit) {
  const int64_t shares = std::max<int64_t>(1, (n + most - 1) / most);
  return std::max<int64_t>(1, ((n + shares - 1) / shares + unit - 1) / unit * unit);
}

// Of k steps, so many at a time: a multiple of 16, so that parts of a vocabulary, which end where they do, can be small whatever
// its size.
inline int64_t depth_of(int64_t k, int64_t most) { return k <= most ? k : even_share(k, most, 16); }

struct GemmBlock {
  int64_t m0, m1, n0, n1, k;
  const float* a;  // A(i, k) = a[i * a_row + k * a_step]; one of both is 1
  int64_t a_row, a_step;
  const float* b;  // B(k, j) = b[k * b_step + j * b_column]; likewise
  int64_t b_step, b_column;
  float* c;
  int64_t ldc;
  const float* bias;  // nullptr: none
  bool add;
  int64_t whole_k;  // ProductShape's
  bool pack_a;
  bool dots;       // few rows and a transposed B
  float* scratch;  // gemm_scratch_bytes()
};

// Steps of k that are summed before they are added to C, on this processor.
int64_t gemm_block_depth(int64_t k, bool pack_a);
// Whether A's rows are packed on this processor for the sake of so many columns of C: with AVX2, where half as long vectors need
// twice as many loads, which then come from the second cache in order, whatever the rows' distance.
bool gemm_packs_rows(int64_t columns);
// For any number of rows up to `rows`.
int64_t gemm_scratch_bytes(int64_t rows, int64_t k, bool pack_a);
void gemm_block(const GemmBlock& g);

}  // namespace cairn::kernels::cpu
