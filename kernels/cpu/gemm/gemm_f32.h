// float32 matrix products, blocked for caches and registers (Goto and van de Geijn: "Anatomy of
// High-Performance Matrix Multiplication", 2008). Scratch space is the caller's; running allocates nothing.
#pragma once
#include <cstdint>

namespace cairn::kernels::cpu {

struct ProductShape {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;  // A is stored [k, m], B is stored [n, k]
  int64_t lda = 0, ldb = 0, ldc = 0;              // of the stored rows; 0: dense
  bool bias = false;                              // float32 [n] added to every row
  bool add = false;                               // C += A B
  // Steps of the product that this one is a share of: it is summed in the blocks of that one, so that shares which begin
  // at such blocks and add up make its bits. 0: k.
  int64_t whole_k = 0;
  int parts_a = 3,
      parts_b = 3;  // bfloat16 numbers whose sum is one of A, of B: 3, of float16 2, of bfloat16 1
};

// C[m, n] = A[m, k] B[k, n] over the threads of the caller. Every element of C is summed by one thread, in an
// order that the shape and the instruction set alone decide: any number of threads makes the same bits.
class Product {
 public:
  Product(const ProductShape& shape, int threads);
  int64_t scratch_bytes() const;
  void run(const float* a, const float* b, float* c, void* scratch, const float* bias = nullptr) const;

 private:
  ProductShape shape_;
  bool pack_a_ = false;
  int64_t row_shares_ = 1, column_shares_ = 1;  // C is cut into a grid; a share is a cell of it
};

}  // namespace cairn::kernels::cpu
