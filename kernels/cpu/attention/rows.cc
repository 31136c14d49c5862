#include <cmath>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

template <class T>
void clear(T* p, int64_t begin, int64_t end) {
  for_each_vector(begin, end, [&](auto t, int64_t i) { put(t, hn::Zero(DF()), p + i); });
}

template <class T>
float score_row_typed(float* s, int64_t visible, int64_t n, float scale, T* p) {
  const V lowest = set(-3.0e38f);
  V top = lowest;
  for_each_vector(0, visible, [&](auto t, int64_t i) { top = hn::Max(top, keep(t, get(t, s + i), lowest)); });
  // scale may be negative: then the largest score is the smallest product.
  float largest = max_lanes(top) * scale;
  if (scale < 0) {
    V bottom = set(3.0e38f);
    for_each_vector(0, visible, [&](auto t, int64_t i) {
      bottom = hn::Min(bottom, keep(t, get(t, s + i), set(3.0e38f)));
    });
    largest = hn::GetLane(hn::MinOfLanes(DF(), bottom)) * scale;
  }
  const V factor = set(scale), shift = set(largest);
  V sum = hn::Zero(DF());
  for_each_vector(0, visible, [&](auto t, int64_t i) {
    const V v = exp(hn::MulSub(get(t, s + i), factor, shift));
    put(t, v, s + i);
    sum = hn::Add(sum, keep(t, v, hn::Zero(DF())));
  });
  const float total = sum_lanes(sum);
  const float lse = largest + std::log(total);
  const V inverse = set(1.0f / total);
  for_each_vector(0, visible, [&](auto t, int64_t i) { put(t, hn::Mul(get(t, s + i), inverse), p + i); });
  clear(p, visible, n);
  return lse;
}
float score_row_dispatch(float* s, int64_t visible, int64_t n, float scale, DType type, void* p) {
  return with_float(type, [&](auto zero) {
    return score_row_typed(s, visible, n, scale, static_cast<decltype(zero)*>(p));
  });
}

template <class T>
void score_grad_typed(const float* s, const float* dp, int64_t visible, int64_t n, float scale, float lse,
                      float delta, T* p, T* ds) {
  if (visible == 1) {
    // A softmax of one element is constant; rounding in delta must not give it a gradient.
    clear(p, 0, n);
    clear(ds, 0, n);
    put(Part{1}, set(1.0f), p);
    return;
  }
  const V factor = set(scale), shift = set(lse), center = set(delta);
  for_each_vector(0, visible, [&](auto t, int64_t i) {
    const V prob = exp(hn::MulSub(get(t, s + i), factor, shift));
    const V derivative = hn::Mul(hn::Mul(prob, factor), hn::Sub(get(t, dp + i), center));
    put(t, prob, p + i);
    put(t, derivative, ds + i);
  });
  clear(p, visible, n);
  clear(ds, visible, n);
}
void score_grad_dispatch(const float* s, const float* dp, int64_t visible, int64_t n, float scale, float lse,
                         float delta, DType type, void* p, void* ds) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    score_grad_typed(s, dp, visible, n, scale, lse, delta, static_cast<T*>(p), static_cast<T*>(ds));
  });
}

template <class T>
float dot_typed(const T* a, const T* b, int64_t n) {
  V sum = hn::Zero(DF());
  for_each_vector(0, n, [&](auto t, int64_t i) { sum = hn::MulAdd(get(t, a + i), get(t, b + i), sum); });
  return sum_lanes(sum);
}
float dot_dispatch(DType type, const void* a, const void* b, int64_t n) {
  return with_float(type, [&](auto zero) {
    using T = decltype(zero);
    return dot_typed(static_cast<const T*>(a), static_cast<const T*>(b), n);
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {

HWY_EXPORT(score_row_dispatch);
HWY_EXPORT(score_grad_dispatch);
HWY_EXPORT(dot_dispatch);

float score_row(float* s, int64_t visible, int64_t n, float scale, DType type, void* p) {
  return CAIRN_DISPATCH(score_row_dispatch)(s, visible, n, scale, type, p);
}
void score_grad_row(const float* s, const float* dp, int64_t visible, int64_t n, float scale, float lse,
                    float delta, DType type, void* p, void* ds) {
  CAIRN_DISPATCH(score_grad_dispatch)(s, dp, visible, n, scale, lse, delta, type, p, ds);
}
float dot(DType type, const void* a, const void* b, int64_t n) {
  return CAIRN_DISPATCH(dot_dispatch)(type, a, b, n);
}

std::optional<AttentionShape> attention_shape(const Signature& s, size_t first) {
  const DType type = s.in[0].dtype;
  if (!is_fast_float(type) || s.attrs == nullptr) return std::nullopt;
  for (size_t i = 0; i < s.in.size(); ++i)
    if (s.has_in(i) && s.in[i].dtype != type && !(first == 1 && i == 5 && plain_f32(s.in[i])))
      return std::nullopt;
  AttentionShape a;
  const Shape& q = s.in[first].shape;
  a.packed = !s.has_in(first + 1);
  a.heads = s.attrs->integer("heads");
  a.kv_heads = s.attrs->integer("kv_heads", 0);
  if (a.kv_heads <= 0) a.kv_heads = a.heads;
  a.batch = q[0];
  a.length = q[1];
  a.q_ld = q[2];
  a.dim = a.packed ? q[2] / (a.heads + 2 * a.kv_heads) : q[2] / a.heads;
  a.kv_ld = a.packed ? a.q_ld : a.kv_heads * a.dim;
  a.y_ld = a.heads * a.dim;
  a.causal = s.attrs->integer("causal", 1) != 0;
  a.type = type;
  a.scale = static_cast<float>(s.attrs->real("scale", 1.0 / std::sqrt(static_cast<double>(a.dim))));
  return a;
}

}  // namespace cairn::kernels::cpu
#endif
