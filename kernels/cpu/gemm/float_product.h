// A float32 product by the faster of two ways: on the AMX tiles (amx_f32.h) where there are tiles and the
// product is large enough to pay for splitting its operands, else by gemm_f32.h.
#pragma once
#include <optional>

#include "kernels/cpu/gemm/amx_f32.h"
#include "kernels/cpu/gemm/gemm_f32.h"
#include "kernels/cpu/simd/isa.h"

namespace cairn::kernels::cpu {

// Whether there are tiles, and they save more than splitting costs.
inline bool worth_splitting(const ProductShape& s) {
  constexpr int64_t kMin = 256, kMinDepth = 128;
  return has_amx() && s.m >= kMin && s.n >= kMin && s.k >= kMinDepth;
}

class FloatProduct {
 public:
  FloatProduct(const ProductShape& s, int threads) {
    if (worth_splitting(s))
      split_.emplace(s, threads);
    else
      plain_.emplace(s, threads);
  }
  bool on_tiles() const { return split_.has_value(); }
  int64_t scratch_bytes() const { return split_ ? split_->scratch_bytes() : plain_->scratch_bytes(); }
  void run(const float* a, const float* b, float* c, void* scratch, const float* bias = nullptr) const {
    split_ ? split_->run(a, b, c, scratch, bias) : plain_->run(a, b, c, scratch, bias);
  }

 private:
  std::optional<SplitProduct> split_;
  std::optional<Product> plain_;
};

}  // namespace cairn::kernels::cpu
