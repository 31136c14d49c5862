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

// A NaN stays NaN: the maximum of x86 would give its second operand then.
HWY_INLINE V relu(V x) { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(DF())), x); }
// By the argument or the result; a NaN lets dy through.
HWY_INLINE V relu_grad(V dy, V y) { return hn::IfThenZeroElse(hn::Le(y, hn::Zero(DF())), dy); }
template <class X>
HWY_INLINE X silu(X x) {
  return mul(x, sigmoid(x));
}
// d/dx x s(x) = s (1 + x (1 - s))
template <class X>
HWY_INLINE X silu_grad(X dy, X x) {
  const X s = sigmoid(x);
  return mul(dy, mul(s, mul_add(x, sub(set(1.0f), s), set(1.0f))));
}

// (1 + tanh u) / 2 = sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): Hendrycks and Gimpel, 2016.
template <class X>
HWY_INLINE X gelu_gate(X x, X xx) {
  return sigmoid(mul(set(2.0f * kSqrt2OverPi), mul(x, mul_add(set(kCubic), xx, set(1.0f)))));
}
template <class X>
HWY_INLINE X gelu_tanh(X x) {
  return mul(x, gelu_gate(x, mul(x, x)));
}
template <class X>
HWY_INLINE X gelu_tanh_grad(X dy, X x) {
  // Where the gate is long 0 or 1, so that the squares of large numbers are none that 0 times is NaN.
  const X xx = min(set(1e4f), mul(x, x));
  const X s = gelu_gate(x, xx);
  const X twice_du = mul(set(2.0f * kSqrt2OverPi), mul_add(set(3.0f * kCubic), xx, set(1.0f)));
  const X ds = mul(mul(s, sub(set(1.0f), s)), twice_du);
  return mul(dy, mul_add(x, ds, s));
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
