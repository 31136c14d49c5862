// What is done with finished blocks of sums: bias, activation, conversion; and column sums.
#pragma once
#include <cstdint>
#include <string_view>

#include "kernels/cpu/gemm/bf16/gemm.h"

namespace cairn::kernels::cpu {

enum class Activation : uint8_t {
  kNone,
#define FUNCTION(name, ...) k_##name,
#include "runtime/base/elementwise.def"
};
// Reads the name of an activation, "" (none) or a function of elementwise.def; false if unknown.
bool parse_activation(std::string_view word, Activation* out);

// y = act(c + bias) in bfloat16; pre, when given, takes the argument of act, and y is computed from it as
// stored.
class LinearEpilogue final : public Epilogue {
 public:
  LinearEpilogue(Activation act, const float* bias, bf16* y, bf16* pre, int64_t ld)
      : act_(act), bias_(bias), y_(y), pre_(pre), ld_(ld) {}
  Target target() const override { return {reinterpret_cast<const char*>(y_), ld_ * 2}; }
  void block(const float* c, int64_t m, int64_t rows, int64_t n, int64_t columns) const override;

  Activation act_;
  const float* bias_;
  bf16 *y_, *pre_;
  int64_t ld_;
};

// y = c act'(pre) in bfloat16. Full rows at a time are multiplied by their derivatives: within a block, a
// load of pre would wait for stores of y that look like its neighbours, as rows are often a multiple of 4096
// bytes apart.
class DerivativeEpilogue final : public Epilogue {
 public:
  DerivativeEpilogue(Activation act, const bf16* pre, bf16* y, int64_t ld)
      : act_(act), pre_(pre), y_(y), ld_(ld), store_(Activation::kNone, nullptr, y, nullptr, ld) {}
  Target target() const override { return store_.target(); }
  int64_t most_rows() const override { return kGemmRows; }  // y and pre are read again
  void block(const float* c, int64_t m, int64_t rows, int64_t n, int64_t columns) const override {
    store_.block(c, m, rows, n, columns);
  }
  void finished(int64_t m, int64_t rows, int64_t n0, int64_t n1) const override;

 private:
  Activation act_;
  const bf16* pre_;
  bf16* y_;
  int64_t ld_;
  LinearEpilogue store_;
};

// y = act(x) over n float32 elements.
void activate(Activation act, const float* x, float* y, int64_t n);
// y *= act'(pre) over n elements of one type.
void multiply_derivatives(Activation act, DType type, const void* pre, void* y, int64_t n);
// sums[j] (+)= sum over rows of x[r * ld + j], j < columns, in row order.
void column_sums(DType type, const void* x, int64_t ld, int64_t rows, int64_t columns, float* sums, bool add);

}  // namespace cairn::kernels::cpu
