#include "kernels/cpu/vocabulary/logits.h"

#include <cstring>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vocabulary/logits.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/activation-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

void make_logits_dispatch(DType type, void* row, int64_t n, float scale, float cap) {
  with_float(type, [&](auto zero) {
    auto* const x = static_cast<decltype(zero)*>(row);
    const V inner = set(cap > 0 ? scale / cap : scale), outer = set(cap);
    for_each_vector(0, n, [&](auto t, int64_t i) {
      const V v = hn::Mul(inner, get(t, x + i));
      put(t, cap > 0 ? hn::Mul(outer, tanh(v)) : v, x + i);
    });
  });
}

void slope_dispatch(DType type, const void* products, void* row, int64_t n, float scale, float cap) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    const auto* const x = static_cast<const T*>(products);
    auto* const d = static_cast<T*>(row);
    const V inner = set(scale / cap), outer = set(scale);
    for_each_vector(0, n, [&](auto t, int64_t i) {
      const V g = hn::Mul(outer, get(t, d + i));
      put(t, cap > 0 ? tanh_grad(g, tanh(hn::Mul(inner, get(t, x + i)))) : g, d + i);
    });
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(make_logits_dispatch);
HWY_EXPORT(slope_dispatch);

LogitRows::LogitRows(const Signature& s, const HeadSizes& z, bool gradients, Workspace* space)
    : type_(z.logits),
      n_(z.n),
      bytes_(z.n * dtype_bytes(z.logits)),
      scale_(s.attrs != nullptr ? static_cast<float>(s.attrs->real("scale", 1)) : 1.0f),
      cap_(s.attrs != nullptr ? static_cast<float>(s.attrs->real("softcap")) : 0.0f) {
  if (gradients && cap_ > 0) kept_at_ = space->add(s.threads * bytes_);
}

void LogitRows::make(const Call& call, char* row, int thread) const {
  if (scale_ == 1 && cap_ == 0) return;
  if (kept_at_ >= 0) std::memcpy(kept(call, thread), row, static_cast<size_t>(bytes_));
  CAIRN_DISPATCH(make_logits_dispatch)(type_, row, n_, scale_, cap_);
}

void LogitRows::slope(const Call& call, char* row, int thread) const {
  if (scale_ == 1 && cap_ == 0) return;
  const char* const products = kept_at_ >= 0 ? kept(call, thread) : row;
  CAIRN_DISPATCH(slope_dispatch)(type_, products, row, n_, scale_, cap_);
}

}  // namespace cairn::kernels::cpu
#endif
