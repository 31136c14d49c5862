// float32 products of small matrices on the calling thread, for the inside of attention.
#pragma once
#include <cstdint>

namespace cairn::kernels::cpu {

// C[m, n] (+)= A B; A(i, k) = a[i * a_row + k * a_step], B row-major [k, ldb], C row-major [m, ldc].
struct SmallGemm {
  int64_t m, n, k;
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  bool add;
};
void small_gemm(const SmallGemm& g);

}  // namespace cairn::kernels::cpu
