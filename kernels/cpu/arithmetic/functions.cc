#include "kernels/cpu/arithmetic/functions.h"

#include <cmath>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/arithmetic/functions.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/activation-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

using Mask = hn::Mask<DF>;
HWY_INLINE V zero() { return hn::Zero(DF()); }
HWY_INLINE V one_where(Mask mask) { return hn::IfThenElseZero(mask, set(1.0f)); }
HWY_INLINE V choose(Mask mask, V yes, V no) { return hn::IfThenElse(mask, yes, no); }

// x^n by squaring.
HWY_INLINE V whole_power(V x, int n) {
  V result = set(1.0f);
  for (int left = n < 0 ? -n : n; left > 0; left /= 2) {
    if (left % 2 == 1) result = hn::Mul(result, x);
    x = hn::Mul(x, x);
  }
  return n < 0 ? hn::Div(set(1.0f), result) : result;
}
// Few products or a root where the exponent allows, else number by number.
HWY_INLINE V power(V x, float exponent) {
  constexpr float kMost = 16;
  const float twice = 2 * exponent;
  if (std::fabs(exponent) <= kMost && twice == std::nearbyint(twice)) {
    const int whole = static_cast<int>(std::floor(exponent));
    if (static_cast<float>(whole) == exponent) return whole_power(x, whole);
    const V root = hn::Sqrt(x);
    return exponent < 0 ? hn::Div(set(1.0f), hn::Mul(root, whole_power(x, -whole - 1)))
                        : hn::Mul(root, whole_power(x, whole));
  }
  float lane[kMaxLanes];
  hn::StoreU(x, DF(), lane);
  for (size_t i = 0; i < hn::Lanes(DF()); ++i) lane[i] = std::pow(lane[i], exponent);
  return hn::LoadU(DF(), lane);
}

// Functions of operands a, b and c, of which those that there are count.
#define FUNCTION(name, value) \
  HWY_INLINE V name##_of(V a, V b, V c, const Parameters& m) { return value; }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
FUNCTION(add, hn::Add(a, b))
FUNCTION(sub, hn::Sub(a, b))
FUNCTION(mul, hn::Mul(a, b))
FUNCTION(div, hn::Div(a, b))
FUNCTION(div_grad, hn::Div(hn::Neg(hn::Mul(a, b)), c))
// If a or b is NaN, so is the result.
FUNCTION(minimum, choose(hn::Or(hn::IsNaN(a), hn::Lt(a, b)), a, b))
FUNCTION(maximum, choose(hn::Or(hn::IsNaN(a), hn::Gt(a, b)), a, b))
FUNCTION(greater_grad, choose(hn::Gt(b, c), a, hn::IfThenElseZero(hn::Eq(b, c), hn::Mul(set(0.5f), a))))
FUNCTION(less, one_where(hn::Lt(a, b)))
FUNCTION(less_equal, one_where(hn::Le(a, b)))
FUNCTION(greater, one_where(hn::Gt(a, b)))
FUNCTION(greater_equal, one_where(hn::Ge(a, b)))
FUNCTION(equal, one_where(hn::Eq(a, b)))
FUNCTION(not_equal, choose(hn::Eq(a, b), zero(), set(1.0f)))
FUNCTION(where, choose(hn::Eq(a, zero()), c, b))
FUNCTION(where_grad, m.p == 0 ? choose(hn::Eq(b, zero()), zero(), a) : choose(hn::Eq(b, zero()), a, zero()))
FUNCTION(clamp, choose(hn::Lt(a, set(m.p)), set(m.p), choose(hn::Gt(a, set(m.q)), set(m.q), a)))
FUNCTION(clamp_grad, choose(hn::Or(hn::Lt(b, set(m.p)), hn::Gt(b, set(m.q))), zero(), a))
FUNCTION(softcap, hn::Mul(set(m.p), tanh(hn::Div(a, set(m.p)))))
FUNCTION(softcap_grad, tanh_grad(a, tanh(hn::Div(b, set(m.p)))))
FUNCTION(pow, power(a, m.p))
FUNCTION(pow_grad, m.p == 0 ? zero() : hn::Mul(hn::Mul(a, set(m.p)), power(b, m.p - 1)))
#pragma GCC diagnostic pop
#undef FUNCTION

template <int kOperands, class F>
HWY_INLINE void sweep(const F& f, const float* const in[kMostOperands], float* y, int64_t n) {
  for_each_vector(0, n, [&](auto t, int64_t i) {
    const V a = get(t, in[0] + i);
    const V b = kOperands > 1 ? get(t, in[kOperands > 1 ? 1 : 0] + i) : a;
    const V c = kOperands > 2 ? get(t, in[kOperands > 2 ? 2 : 0] + i) : a;
    put(t, f(a, b, c), y + i);
  });
}

void calculate_dispatch(Arithmetic f, const float* const in[kMostOperands], float* y, int64_t n,
                        const Parameters& m) {
  switch (f) {
#define ARITHMETIC(op, operands, ...) \
  case Arithmetic::k_##op:            \
    return sweep<operands>([&m](V a, V b, V c) HWY_ATTR { return op##_of(a, b, c, m); }, in, y, n);
#include "runtime/base/arithmetic.def"
  }
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(calculate_dispatch);

void calculate(Arithmetic f, const float* const in[kMostOperands], float* y, int64_t n, const Parameters& m) {
  CAIRN_DISPATCH(calculate_dispatch)(f, in, y, n, m);
}
}  // namespace cairn::kernels::cpu
#endif
