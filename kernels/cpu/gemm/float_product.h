// A float32 product by the faster of two ways: on the AMX tiles (amx_f32.h) where there are tiles and the
// product is large enough to pay for splitting its operands, else by gemm_f32.h.
#pragma once
#include <optional>

#include "kernels/cpu/gemm/amx_f32.h"
#include "kernels/cpu/gemm/gemm_f32.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/widened.h"

namespace cairn::kernels::cpu {

// Whether there are tiles, and they save more than splitting costs.
inline bool worth_splitting(const ProductShape& s) {
  constexpr int64_t kMin = 256, kMinDepth = 128;
  return has_amx() && s.m >= kMin && s.n >= kMin && s.k >= kMinDepth;
}

class FloatProduct {
 public:
  FloatProduct(const ProductShape& s, int threads) : FloatProduct(s, threads, worth_splitting(s)) {}
  FloatProduct(const ProductShape& s, int threads, bool on_tiles) {
    if (on_tiles)
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

// The product with a B in blocks or 16 bits, which is made float32 by columns of C, so many that they take a few megabytes; where C
// has few rows and B is transposed, by a few columns of each thread. The bits are those of the product with all of B in float32.
class SlabProduct {
 public:
  SlabProduct(const ProductShape& s, const TensorDesc& weight, DType compute, int threads);
  int64_t scratch_bytes() const { return space_.bytes(); }
  void run(const float* a, const void* weight, float* c, void* scratch, const float* bias = nullptr) const;

 private:
  void few_rows(const float* a, const void* weight, float* c, void* scratch, const float* bias) const;

  ProductShape shape_;
  WeightRows weight_;
  bool dots_;
  int64_t columns_;  // of C that are made at once
  Workspace space_;
  int64_t decoded_at_, each_ = 0, scratch_at_ = 0;
  std::optional<FloatProduct> slab_, rest_;
};

// The product with a weight as it is stored, or packed by pack_weight.
class WeightProduct {
 public:
  // compute: the type of the activations. It decides what values of blocks are rounded to.
  WeightProduct(const ProductShape& s, const TensorDesc& weight, DType compute, int threads) {
    if (weight.packed_bytes > 0 || weight.dtype == DType::kF32)
      whole_.emplace(s, threads);
    else
      slabs_.emplace(s, weight, compute, threads);
  }
  int64_t scratch_bytes() const { return slabs_ ? slabs_->scratch_bytes() : whole_->scratch_bytes(); }
  void run(const float* a, const void* b, float* c, void* scratch, const float* bias = nullptr) const {
    slabs_ ? slabs_->run(a, b, c, scratch, bias)
           : whole_->run(a, static_cast<const float*>(b), c, scratch, bias);
  }

 private:
  std::optional<SlabProduct> slabs_;
  std::optional<FloatProduct> whole_;
};

}  // namespace cairn::kernels::cpu
