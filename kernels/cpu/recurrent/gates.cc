#include "kernels/cpu/recurrent/gates.h"

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/recurrent/gates.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/activation-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// Zeros where there is no operand.
template <class Size, class T>
HWY_INLINE V get_or_zero(Size size, const T* p, int64_t i) {
  return p != nullptr ? get(size, p + i) : hn::Zero(DF());
}

// Writes a result, and hands it on as it was stored.
template <class Size, class T>
HWY_INLINE void put_both(Size size, V v, T* to, const Factor& factor, int64_t i) {
  put(size, v, to + i);
  if (factor.narrow)
    put(size, get(size, to + i), static_cast<bf16*>(factor.to) + i);
  else
    put(size, get(size, to + i), static_cast<float*>(factor.to) + i);
}

template <class T>
void lstm_step_typed(const LstmStep& s) {
  const int64_t n = s.hidden;
  const T* gates = static_cast<const T*>(s.gates);
  T *y = static_cast<T*>(s.y), *saved = static_cast<T*>(s.saved);
  for_each_vector(0, n, [&](auto size, int64_t h) {
    const auto sum = [&](int64_t k) {
      return hn::Add(get(size, gates + k * n + h), get_or_zero(size, s.products, k * n + h));
    };
    const V i = sigmoid(sum(0)), f = sigmoid(sum(1)), g = tanh(sum(2)), o = sigmoid(sum(3));
    const V cell = hn::MulAdd(f, get(size, s.cell + h), hn::Mul(i, g));
    put(size, cell, s.cell + h);
    if (s.cells != nullptr) put(size, cell, s.cells + h);
    if (saved != nullptr) {
      put(size, i, saved + h);
      put(size, f, saved + n + h);
      put(size, g, saved + 2 * n + h);
      put(size, o, saved + 3 * n + h);
    }
    put_both(size, hn::Mul(o, tanh(cell)), y, s.factor, h);
  });
}
void lstm_step_dispatch(const LstmStep& s) {
  with_float(s.type, [&](auto zero) { lstm_step_typed<decltype(zero)>(s); });
}

template <class T>
void lstm_step_grad_typed(const LstmStepGrad& s) {
  const int64_t n = s.hidden;
  const T *dy = static_cast<const T*>(s.dy), *saved = static_cast<const T*>(s.saved);
  T* dgates = static_cast<T*>(s.dgates);
  for_each_vector(0, n, [&](auto size, int64_t h) {
    const V i = get(size, saved + h), f = get(size, saved + n + h), g = get(size, saved + 2 * n + h),
            o = get(size, saved + 3 * n + h), tanh_c = tanh(get(size, s.cells + h));
    const V dh = hn::Add(get_or_zero(size, dy, h), get_or_zero(size, s.products, h));
    const V dc = hn::Add(hn::Add(get(size, s.dcell + h), get_or_zero(size, s.dc, h)),
                         tanh_grad(hn::Mul(dh, o), tanh_c));
    put_both(size, sigmoid_grad(hn::Mul(dc, g), i), dgates, s.factor, h);
    put_both(size, sigmoid_grad(hn::Mul(dc, get_or_zero(size, s.before, h)), f), dgates, s.factor, n + h);
    put_both(size, tanh_grad(hn::Mul(dc, i), g), dgates, s.factor, 2 * n + h);
    put_both(size, sigmoid_grad(hn::Mul(dh, tanh_c), o), dgates, s.factor, 3 * n + h);
    put(size, hn::Mul(dc, f), s.dcell + h);
  });
}
void lstm_step_grad_dispatch(const LstmStepGrad& s) {
  with_float(s.type, [&](auto zero) { lstm_step_grad_typed<decltype(zero)>(s); });
}

template <class T>
void gru_step_typed(const GruStep& s) {
  const int64_t n = s.hidden;
  const T* gates = static_cast<const T*>(s.gates);
  T *y = static_cast<T*>(s.y), *saved = static_cast<T*>(s.saved);
  for_each_vector(0, n, [&](auto size, int64_t h) {
    const auto of_input = [&](int64_t k) { return get(size, gates + k * n + h); };
    const auto of_state = [&](int64_t k) {
      return hn::Add(get_or_zero(size, s.products, k * n + h), get_or_zero(size, s.bias, k * n + h));
    };
    const V r = sigmoid(hn::Add(of_input(0), of_state(0))), z = sigmoid(hn::Add(of_input(1), of_state(1)));
    const V hidden = of_state(2), candidate = tanh(hn::MulAdd(r, hidden, of_input(2)));
    const V state = hn::MulAdd(z, hn::Sub(get(size, s.state + h), candidate), candidate);
    put(size, state, s.state + h);
    if (saved != nullptr) {
      put(size, r, saved + h);
      put(size, z, saved + n + h);
      put(size, candidate, saved + 2 * n + h);
      put(size, hidden, saved + 3 * n + h);
    }
    put_both(size, state, y, s.factor, h);
  });
}
void gru_step_dispatch(const GruStep& s) {
  with_float(s.type, [&](auto zero) { gru_step_typed<decltype(zero)>(s); });
}

template <class T>
void gru_step_grad_typed(const GruStepGrad& s) {
  const int64_t n = s.hidden;
  const T *dy = static_cast<const T*>(s.dy), *saved = static_cast<const T*>(s.saved),
          *before = static_cast<const T*>(s.before);
  T *dgates = static_cast<T*>(s.dgates), *dhidden = static_cast<T*>(s.dhidden);
  for_each_vector(0, n, [&](auto size, int64_t h) {
    const V r = get(size, saved + h), z = get(size, saved + n + h), candidate = get(size, saved + 2 * n + h),
            hidden = get(size, saved + 3 * n + h);
    const V dh =
        hn::Add(hn::Add(get(size, dy + h), get(size, s.dstate + h)), get_or_zero(size, s.products, h));
    const V dn = tanh_grad(hn::NegMulAdd(dh, z, dh), candidate), dr = sigmoid_grad(hn::Mul(dn, hidden), r),
            dz = sigmoid_grad(hn::Mul(dh, hn::Sub(get_or_zero(size, before, h), candidate)), z);
    put(size, dr, dgates + h);
    put(size, dz, dgates + n + h);
    put(size, dn, dgates + 2 * n + h);
    put_both(size, dr, dhidden, s.factor, h);
    put_both(size, dz, dhidden, s.factor, n + h);
    put_both(size, hn::Mul(dn, r), dhidden, s.factor, 2 * n + h);
    put(size, hn::Mul(dh, z), s.dstate + h);
  });
}
void gru_step_grad_dispatch(const GruStepGrad& s) {
  with_float(s.type, [&](auto zero) { gru_step_grad_typed<decltype(zero)>(s); });
}

void add_rounded_dispatch(DType type, const float* a, const float* b, void* to, int64_t n) {
  with_float(type, [&](auto zero) {
    for_each_vector(0, n, [&](auto size, int64_t i) {
      put(size, hn::Add(get(size, a + i), get(size, b + i)), static_cast<decltype(zero)*>(to) + i);
    });
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(lstm_step_dispatch);
HWY_EXPORT(lstm_step_grad_dispatch);
HWY_EXPORT(gru_step_dispatch);
HWY_EXPORT(gru_step_grad_dispatch);
HWY_EXPORT(add_rounded_dispatch);

void lstm_step(const LstmStep& s) { CAIRN_DISPATCH(lstm_step_dispatch)(s); }
void lstm_step_grad(const LstmStepGrad& s) { CAIRN_DISPATCH(lstm_step_grad_dispatch)(s); }
void gru_step(const GruStep& s) { CAIRN_DISPATCH(gru_step_dispatch)(s); }
void gru_step_grad(const GruStepGrad& s) { CAIRN_DISPATCH(gru_step_grad_dispatch)(s); }
void add_rounded(DType type, const float* a, const float* b, void* to, int64_t n) {
  CAIRN_DISPATCH(add_rounded_dispatch)(type, a, b, to, n);
}
}  // namespace cairn::kernels::cpu
#endif
