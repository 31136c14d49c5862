// What the reference kernels share: element access in double, dispatch on the element type. Slow and obvious
// on purpose: inputs are read into double, all arithmetic is double, an output is rounded once.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/base/kernel.h"

namespace cairn::kernels::reference {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

inline double load(float v) { return v; }
inline double load(double v) { return v; }
inline double load(bf16 v) { return to_float(v); }
inline double load(f16 v) { return to_float(v); }

template <class T>
T store(double v) {
  return static_cast<T>(v);
}
// To float for a coarser type, so that it is rounded once: an inexact float keeps a sticky last bit ("round to
// odd"), which cannot lie on a tie of the coarser type.
inline float to_odd(double v) {
  float f = static_cast<float>(v);
  if (std::isfinite(f) && static_cast<double>(f) != v) {
    uint32_t bits = std::bit_cast<uint32_t>(f);
    if (std::fabs(static_cast<double>(f)) > std::fabs(v)) --bits;  // back towards zero
    f = std::bit_cast<float>(bits | 1u);
  }
  return f;
}
template <>
inline bf16 store<bf16>(double v) {
  return to_bf16(to_odd(v));
}
template <>
inline f16 store<f16>(double v) {
  return to_f16(to_odd(v));
}

// Parameters, statistics and accumulated outputs that go with activations of type T.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Element i of a tensor of any float type or i32, for operands whose type is free.
double at(const Tensor& tensor, int64_t i);
void set(const Tensor& tensor, int64_t i, double v);

inline bool in_blocks(DType t) { return format(t).read == Read::kDequantised; }
// Value i of blocks.
float decoded(const Tensor& tensor, int64_t i);

// A weight that goes with activations of type T, by element: wide, of T itself, or decoded from blocks to what an op reads.
template <class T>
class Weight {
 public:
  explicit Weight(const Tensor& tensor) {
    if (in_blocks(tensor.desc.dtype))
      blocks_ = &tensor;
    else if (tensor.desc.dtype == DType::kBF16 || tensor.desc.dtype == DType::kF16)
      own_ = tensor.as<T>();
    else
      wide_ = tensor.as<Wide<T>>();
  }
  double operator[](int64_t i) const {
    if (blocks_ != nullptr)
      return std::is_same_v<T, bf16> ? to_float(to_bf16(decoded(*blocks_, i))) : decoded(*blocks_, i);
    return wide_ != nullptr ? load(wide_[i]) : load(own_[i]);
  }

 private:
  const Tensor* blocks_ = nullptr;
  const Wide<T>* wide_ = nullptr;
  const T* own_ = nullptr;
};

// What the fused losses make of a product of x and a weight's row: a logit, and its derivative by the product.
class Logits {
 public:
  explicit Logits(const Attrs& attrs) : scale_(attrs.real("scale", 1)), cap_(attrs.real("softcap")) {}
  double of(double product) const {
    return cap_ > 0 ? cap_ * std::tanh(scale_ * product / cap_) : scale_ * product;
  }
  double slope(double logit) const {
    return cap_ > 0 ? scale_ * (1 - logit / cap_ * (logit / cap_)) : scale_;
  }

 private:
  double scale_, cap_;
};

// Writes output i of a call, or adds to it.
template <class T>
void put(const Call& call, size_t output, int64_t i, double v) {
  T& target = call.out[output].as<T>()[i];
  target = store<T>((call.accumulate >> output & 1u) ? load(target) + v : v);
}

// Do the operands have the dtypes that the letters say, one letter per operand in row order? T: the type of
// the activations, P: f32 (f64 with f64), W: either of these or blocks, I: i32, D: f64, F: any float type there are kernels
// for, B: F or blocks, A: any plain type. Sets `t` to the type that T or P stand for. Operands left out fit; packed weights never do.
bool fits(const Signature& signature, std::string_view in, std::string_view out, DType* t);

// Makes K<float>, K<bf16>, K<f16> or K<double>; nullptr if the signature does not fit.
template <template <class> class K>
std::unique_ptr<Kernel> make(const Signature& s, std::string_view in, std::string_view out) {
  DType t = DType::kF32;
  if (!fits(s, in, out, &t)) return nullptr;
  if (t == DType::kF32) return std::make_unique<K<float>>(s);
  if (t == DType::kBF16) return std::make_unique<K<bf16>>(s);
  if (t == DType::kF16) return std::make_unique<K<f16>>(s);
  return std::make_unique<K<double>>(s);
}

// For kernels that work on any type.
template <class K>
std::unique_ptr<Kernel> make_any(const Signature& s, std::string_view in, std::string_view out) {
  DType t = DType::kF32;
  if (!fits(s, in, out, &t)) return nullptr;
  return std::make_unique<K>(s);
}

}  // namespace cairn::kernels::reference
