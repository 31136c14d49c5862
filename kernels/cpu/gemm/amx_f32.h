// float32 matrix products on the bfloat16 tiles. Every float32 number is the exact sum of three bfloat16
// numbers (8 + 8 + 8 bits); of the nine partial products the six largest are summed, in float32; what is left
// out is below 2^-24 of the product, like the rounding of an ordinary float32 product (tests/kernels measures
// both). Numbers below 2^-100 in size lose low bits; an infinity gives NaN. (Henry, Tang, Heinecke:
// "Leveraging the bfloat16 Artificial Intelligence Datatype for Higher-Precision Computations", ARITH 2019.)
//
// A number that was float16 (11 bits, nothing below 2^-24) is the exact sum of two: two such sides need four partial
// products, none of which is rounded or left out; one such side and one of float32 need five. The bits
// are those of three parts, whose last is 0.
#pragma once
#include <cstdint>

#include "kernels/cpu/gemm/gemm_f32.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

struct SplitArea;  // of C (amx_f32.cc)

// C[m, n] (+)= A[m, k] B[k, n] (+ bias) over the threads of the caller. `shape.lda`... as in Product.
class SplitProduct {
 public:
  SplitProduct(const ProductShape& shape, int threads);
  int64_t scratch_bytes() const { return space_.bytes(); }
  // A block at an edge of C adds its sum to C after so many steps of k. Inner blocks keep their sums exactly until the end.
  static int64_t block_depth(int64_t k);
  void run(const float* a, const float* b, float* c, void* scratch, const float* bias = nullptr) const;

 private:
  // One operand as it is stored: element (i, k), i a row of A or a column of B.
  struct Side {
    int64_t count;  // rows of A or columns of B
    int64_t ld;
    bool k_contiguous;
    int parts;
    int64_t strip(int64_t steps) const { return steps * parts * 1024; }  // bytes of 16 of them
  };
  void pack(const Side& side, bool left, const float* from, int64_t i0, int64_t i1, int64_t k0, int64_t k1,
            char* to) const;

  ProductShape shape_;
  Side a_, b_;
  bool share_a_;  // the smaller side is split once for all threads, the other block by block
  int64_t k_block_;
  Workspace space_;
  int64_t shared_at_, blocks_at_, block_, block_bytes_;
  void (*multiply_)(const SplitArea&, bool rows_outside);
};

}  // namespace cairn::kernels::cpu
