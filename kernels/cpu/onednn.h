// float32 matrix products by oneDNN: a primitive made once, scratch space given by the caller.
#pragma once
#include <cstdint>
#include <memory>

namespace cairn::kernels::cpu {

struct ProductShape {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;  // A is stored [k, m], B is stored [n, k]
  int64_t lda = 0, ldb = 0, ldc = 0;              // of the stored rows; 0: dense
  bool bias = false;                              // float32 [n] added to every row
  bool add = false;                               // C += A B
};

// C[m, n] = A[m, k] B[k, n]. run() is for one thread at a time.
class Product {
 public:
  explicit Product(const ProductShape& shape);  // kInternal if oneDNN has no such product
  ~Product();
  Product(Product&&) noexcept;
  int64_t scratch_bytes() const;
  void run(const float* a, const float* b, float* c, void* scratch, const float* bias = nullptr) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::kernels::cpu
