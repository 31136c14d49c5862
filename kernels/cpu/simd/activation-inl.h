// The functions of elementwise.def on vectors of float: f(x), and its gradient f_grad(dy, x) = dy f'(x).
#if defined(CAIRN_KERNELS_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_ACTIVATION_INL_H_
#undef CAIRN_KERNELS_CPU_ACTIVATION_INL_H_
#else
#define CAIRN_KERNELS_CPU_ACTIVATION_INL_H_
#endif

#include <limits>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

inline constexpr float kSqrt2OverPi = 0.7978845608028654f, kCubic = 0.044715f;

// NaN for NaN: the maximum of x86 would give its second operand then.
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
  // x^2 is limited to where the gate has been 0 or 1 for long: an infinite square times 0 would be NaN.
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

template <class X>
HWY_INLINE X sigmoid_grad(X dy, X y) {
  return mul(dy, mul(y, sub(set(1.0f), y)));
}

// Near 0 by a polynomial, where 1 - 2 / (e^2x + 1) cancels; coefficients of Moshier, Cephes.
HWY_INLINE V tanh(V x) {
  const V size = hn::Abs(x), xx = hn::Mul(x, x);
  V p = set(-5.70498872745e-3f);
  for (float c : {2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f})
    p = hn::MulAdd(p, xx, set(c));
  const V near = hn::MulAdd(hn::Mul(p, xx), x, x);
  const V far = hn::Sub(set(1.0f), hn::Div(set(2.0f), hn::Add(exp(hn::Add(size, size)), set(1.0f))));
  return hn::IfThenElse(hn::Lt(size, set(0.625f)), near, hn::CopySign(far, x));
}
HWY_INLINE V tanh_grad(V dy, V y) { return hn::Mul(dy, hn::NegMulAdd(y, y, set(1.0f))); }

HWY_INLINE V exponential(V x) { return exp(x); }
HWY_INLINE V exponential_grad(V dy, V y) { return hn::Mul(dy, y); }

// Of a number above the denormals; Moshier, Cephes: within 2 ulp.
HWY_INLINE V log_of_normal(V x) {
  const hn::RebindToSigned<DF> di;
  const auto bits = hn::BitCast(di, x);
  // The mantissa in [sqrt(1/2), sqrt(2)), and the exponent that goes with it.
  const auto shifted = hn::Sub(bits, hn::Set(di, 0x3f3504f3));
  const V exponent = hn::ConvertTo(DF(), hn::ShiftRight<23>(shifted));
  const auto mantissa = hn::Add(hn::And(shifted, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f3504f3));
  const V m = hn::Sub(hn::BitCast(DF(), mantissa), set(1.0f)), mm = hn::Mul(m, m);
  V p = set(7.0376836292e-2f);
  for (float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                  2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    p = hn::MulAdd(p, m, set(c));
  V y = hn::Mul(hn::Mul(p, m), mm);
  y = hn::MulAdd(exponent, set(-2.12194440e-4f), y);
  y = hn::NegMulAdd(set(0.5f), mm, y);
  return hn::MulAdd(exponent, set(0.693359375f), hn::Add(m, y));
}
HWY_INLINE V logarithm(V x) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto small = hn::Lt(x, set(1.17549435e-38f));  // a denormal, or no number above 0
  const V scaled = hn::IfThenElse(small, hn::Mul(x, set(0x1p25f)), x);
  V y = hn::Sub(log_of_normal(scaled), hn::IfThenElse(small, set(25 * 0.6931471805599453f), hn::Zero(DF())));
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(DF())), set(-inf), y);
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(DF())), set(std::numeric_limits<float>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Lt(x, set(inf)), y, x);  // infinity and NaN are not changed
}
HWY_INLINE V logarithm_grad(V dy, V x) { return hn::Div(dy, x); }

// max(x, 0) + log(1 + u), u = e^-|x|; the quotient corrects for what 1 + u loses of u by rounding.
HWY_INLINE V softplus(V x) {
  const V u = exp(hn::Neg(hn::Abs(x))), w = hn::Add(set(1.0f), u), of_w = hn::Sub(w, set(1.0f));
  const V tail = hn::IfThenElse(hn::Eq(of_w, hn::Zero(DF())), u, hn::Div(hn::Mul(log_of_normal(w), u), of_w));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Add(relu(x), tail));
}
HWY_INLINE V softplus_grad(V dy, V x) { return hn::Mul(dy, sigmoid(x)); }

HWY_INLINE V square_root(V x) { return hn::Sqrt(x); }
HWY_INLINE V square_root_grad(V dy, V y) { return hn::Div(dy, hn::Add(y, y)); }

HWY_INLINE V magnitude(V x) { return hn::Abs(x); }
HWY_INLINE V magnitude_grad(V dy, V x) {
  const V signed_dy = hn::IfThenElse(hn::Lt(x, hn::Zero(DF())), hn::Neg(dy), dy);
  return hn::IfThenElse(hn::IsNaN(x), x,
                        hn::IfThenElse(hn::Eq(x, hn::Zero(DF())), hn::Zero(DF()), signed_dy));
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
