// l2_normalize and its gradient, row by row.
#include <cmath>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pictures/l2_normalize.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/long_sums-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// The sum over the row of a b.
template <class T>
float dot_row(const T* a, const T* b, int64_t n) {
  V sum = hn::Zero(DF());
  sum_row(
      n, sum, CAIRN_ADDS { sum = hn::MulAdd(get(t, a + i), get(t, b + i), sum); });
  return sum_lanes(sum);
}

// y = x / max(norm, eps); returns the norm.
float normalize_dispatch(DType type, const void* from, int64_t n, float eps, void* to) {
  return with_float(type, [&](auto zero) {
    using T = decltype(zero);
    const T* const x = static_cast<const T*>(from);
    T* const y = static_cast<T*>(to);
    const float norm = std::sqrt(dot_row(x, x, n));
    const V divisor = set(norm < eps ? eps : norm);
    for_each_vector(0, n, [&](auto t, int64_t i) { put(t, hn::Div(get(t, x + i), divisor), y + i); });
    return norm;
  });
}

// dx = (dy - y sum(y dy)) / norm; dy / eps where the norm is less than eps.
void normalize_grad_dispatch(DType type, const void* of_dy, const void* of_y, int64_t n, float norm,
                             float eps, void* to) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    const T *const dy = static_cast<const T*>(of_dy), *const y = static_cast<const T*>(of_y);
    T* const dx = static_cast<T*>(to);
    const V along = set(norm < eps ? 0.0f : dot_row(dy, y, n)), divisor = set(norm < eps ? eps : norm);
    for_each_vector(0, n, [&](auto t, int64_t i) {
      put(t, hn::Div(hn::NegMulAdd(get(t, y + i), along, get(t, dy + i)), divisor), dx + i);
    });
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
HWY_EXPORT(normalize_dispatch);
HWY_EXPORT(normalize_grad_dispatch);

std::unique_ptr<Kernel> make_l2_normalize(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  const DType type = s.in[0].dtype;
  const int64_t n = s.in[0].shape.last(), rows = s.in[0].shape.rows(), bytes = n * dtype_bytes(type);
  const auto eps = static_cast<float>(s.attrs->real("eps", 1e-12));
  return make_kernel([=](const Call& call) {
    float* const norms = output<float>(call, 1);
    parallel_for(rows, row_grain(n), [&](int64_t b, int64_t e, int) {
      for (int64_t r = b; r < e; ++r) {
        const float norm = CAIRN_DISPATCH(normalize_dispatch)(type, input<const char>(call, 0) + r * bytes, n,
                                                              eps, output<char>(call, 0) + r * bytes);
        if (norms != nullptr) norms[r] = norm;
      }
    });
  });
}

std::unique_ptr<Kernel> make_l2_normalize_grad(const Signature& s) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != s.in[0].dtype || !plain_f32(s.in[2]) ||
      s.out[0].dtype != s.in[0].dtype)
    return nullptr;
  const DType type = s.in[0].dtype;
  const int64_t n = s.in[0].shape.last(), rows = s.in[0].shape.rows(), bytes = n * dtype_bytes(type);
  const auto eps = static_cast<float>(s.attrs->real("eps", 1e-12));
  return make_kernel([=](const Call& call) {
    parallel_for(rows, row_grain(n), [&](int64_t b, int64_t e, int) {
      for (int64_t r = b; r < e; ++r) CAIRN_DISPATCH(normalize_grad_dispatch)
      (type, input<const char>(call, 0) + r * bytes, input<const char>(call, 1) + r * bytes, n,
       input<const float>(call, 2)[r], eps, output<char>(call, 0) + r * bytes);
    });
  });
}

}  // namespace cairn::kernels::cpu
#endif
