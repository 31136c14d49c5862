// The functions of elementwise.def on vectors of float: f(x), and its gradient f_grad(dy, x) = dy f'(x).
#if defined(CAIRN_KERNELS_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_ACTIVATION_INL_H_
#undef CAIRN_KERNELS_CPU_ACTIVATION_INL_H_
#else
#define CAIRN_KERNELS_CPU_ACTIVATION_INL_H_
#endif

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

inline constexpr float kSqrt2OverPi = 0.7978845608028654f, kCubic = 0.044715f;

HWY_INLINE V relu(V x) { return hn::Max(x, hn::Zero(DF())); }
// By the argument or the result.
HWY_INLINE V relu_grad(V dy, V y) { return hn::IfThenElseZero(hn::Gt(y, hn::Zero(DF())), dy); }
HWY_INLINE V silu(V x) { return hn::Mul(x, sigmoid(x)); }
// d/dx x s(x) = s (1 + x (1 - s))
HWY_INLINE V silu_grad(V dy, V x) {
  const V s = sigmoid(x);
  return hn::Mul(dy, hn::Mul(s, hn::MulAdd(x, hn::Sub(set(1.0f), s), set(1.0f))));
}

// (1 + tanh u) / 2 = sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): Hendrycks and Gimpel, 2016.
HWY_INLINE V gelu_gate(V x, V xx) {
  const V twice = hn::Mul(set(2.0f * kSqrt2OverPi), hn::Mul(x, hn::MulAdd(set(kCubic), xx, set(1.0f))));
  return sigmoid(twice);
}
HWY_INLINE V gelu_tanh(V x) { return hn::Mul(x, gelu_gate(x, hn::Mul(x, x))); }
HWY_INLINE V gelu_tanh_grad(V dy, V x) {
  const V xx = hn::Mul(x, x);
  const V s = gelu_gate(x, xx);
  const V twice_du = hn::Mul(set(2.0f * kSqrt2OverPi), hn::MulAdd(set(3.0f * kCubic), xx, set(1.0f)));
  const V ds = hn::Mul(hn::Mul(s, hn::Sub(set(1.0f), s)), twice_du);
  return hn::Mul(dy, hn::MulAdd(x, ds, s));
}

// Phi(x) = erfc(-x / sqrt 2) / 2
HWY_INLINE V normal_cdf(V x) {
  const V tail = hn::Mul(set(0.5f), erfc_abs(hn::Mul(x, set(0.7071067811865476f))));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(DF())), tail, hn::Sub(set(1.0f), tail));
}
HWY_INLINE V gelu_erf(V x) { return hn::Mul(x, normal_cdf(x)); }
HWY_INLINE V gelu_erf_grad(V dy, V x) {
  const V density = hn::Mul(set(0.3989422804014327f), exp(hn::Mul(set(-0.5f), hn::Mul(x, x))));
  return hn::Mul(dy, hn::MulAdd(x, density, normal_cdf(x)));
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
