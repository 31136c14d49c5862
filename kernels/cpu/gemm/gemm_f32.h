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
  // Where this product is a share of a longer one: that product's k. The share is summed in that product's blocks of k, so
  // that shares which begin at such blocks and are added up have its bits. 0: k.
  int64_t whole_k = 0;
  int parts_a = 3,
      parts_b =
          3;  // on the tiles: how many bfloat16 numbers an element of A, of B is split into: float32 3, float16 2, bfloat16 1
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
