#include "kernels/cpu/pictures/pixels.h"

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pictures/pixels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/several-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

HWY_INLINE V nothing(Full) { return hn::Zero(DF()); }
HWY_INLINE V nothing(Part) { return hn::Zero(DF()); }
#if !HWY_HAVE_SCALABLE
template <size_t kCount>
HWY_INLINE auto nothing(Times<kCount>) {
  return all_rows<kCount>(hn::Zero(DF()));
}
#endif

// Each term of `row` is a sum of its own, which is then added, so that a window of many elements is no long chain.
template <class T>
void sum_pixels_typed(const T* x, const std::vector<PixelTerm>& row, const AxisTerms& columns, int64_t c,
                      T* y) {
  for (const std::vector<PixelTerm>& column : columns) {
    for_each_several<4>(0, c, [&](auto t, int64_t i) HWY_ATTR {
      const auto zero = nothing(t);
      auto total = zero;
      for (const PixelTerm& p : row) {
        auto sum = zero;
        for (const PixelTerm& q : column) sum = mul_add(get(t, x + p.at + q.at + i), set(q.weight), sum);
        total = mul_add(sum, set(p.weight), total);
      }
      put(t, total, y + i);
    });
    y += c;
  }
}
void sum_pixels_dispatch(DType type, const void* x, const std::vector<PixelTerm>& row,
                         const AxisTerms& columns, int64_t channels, void* y) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    sum_pixels_typed(static_cast<const T*>(x), row, columns, channels, static_cast<T*>(y));
  });
}

// What a window sees inside of an axis.
struct Seen {
  int64_t begin, end;
  Seen(const WindowAxis& a, int64_t o)
      : begin(a.begin(o) > 0 ? a.begin(o) : 0),
        end(a.begin(o) + a.taps(o) < a.in ? a.begin(o) + a.taps(o) : a.in) {}
};

template <class T>
void max_pixels_typed(const Windows& all, const T* x, int64_t i, T* y, int32_t* places) {
  const hn::RebindToSigned<DF> di;
  const int64_t c = all.channels;
  const Seen rows(all.h, i);
  for (int64_t j = 0; j < all.w.out; ++j) {
    const Seen columns(all.w, j);
    const int64_t first = rows.begin * all.w.in + columns.begin;
    for_each_vector(0, c, [&](auto t, int64_t k) HWY_ATTR {
      V best = get(t, x + first * c + k);
      auto place = hn::Set(di, static_cast<int32_t>(first));
      for (int64_t row = rows.begin; row < rows.end; ++row)
        for (int64_t column = columns.begin; column < columns.end; ++column) {
          const int64_t pixel = row * all.w.in + column;
          const V v = get(t, x + pixel * c + k);
          const auto larger = hn::And(hn::Not(hn::Le(v, best)), hn::Eq(best, best));  // NaN is largest
          best = hn::IfThenElse(larger, v, best);
          place = hn::IfThenElse(hn::RebindMask(di, larger), hn::Set(di, static_cast<int32_t>(pixel)), place);
        }
      put(t, best, y + k);
      if (places != nullptr) put(t, hn::BitCast(DF(), place), reinterpret_cast<float*>(places) + k);
    });
    y += c;
    if (places != nullptr) places += c;
  }
}
void max_pixels_dispatch(DType type, const Windows& all, const void* x, int64_t i, void* y, int32_t* places) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    max_pixels_typed(all, static_cast<const T*>(x), i, static_cast<T*>(y), places);
  });
}

void store_pixels_dispatch(DType type, const float* from, int64_t pixels, int64_t channels, void* to,
                           int64_t stride) {
  with_float(type, [&](auto zero) {
    auto* y = static_cast<decltype(zero)*>(to);
    for (int64_t p = 0; p < pixels; ++p, from += channels, y += stride)
      for_each_vector(0, channels, [&](auto t, int64_t i) HWY_ATTR { put(t, get(t, from + i), y + i); });
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(sum_pixels_dispatch);
HWY_EXPORT(max_pixels_dispatch);
HWY_EXPORT(store_pixels_dispatch);

void sum_pixels(DType type, const void* x, const std::vector<PixelTerm>& row, const AxisTerms& columns,
                int64_t channels, void* y) {
  CAIRN_DISPATCH(sum_pixels_dispatch)(type, x, row, columns, channels, y);
}
void max_pixels(DType type, const Windows& all, const void* x, int64_t i, void* y, int32_t* places) {
  CAIRN_DISPATCH(max_pixels_dispatch)(type, all, x, i, y, places);
}
void store_pixels(DType type, const float* from, int64_t pixels, int64_t channels, void* to, int64_t stride) {
  CAIRN_DISPATCH(store_pixels_dispatch)(type, from, pixels, channels, to, stride);
}
}  // namespace cairn::kernels::cpu
#endif
