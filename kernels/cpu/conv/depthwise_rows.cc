#include <algorithm>

#include "kernels/cpu/conv/depthwise.h"
#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/depthwise_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

inline constexpr int kSums = kRegisters == 32 ? 8 : 4;  // chains of additions at once

template <class T>
void rows_typed(const DepthwiseRows& s, float* to) {
  const T* const picture = static_cast<const T*>(s.picture);
  const bool full = s.channels == kChannels;
  for (int64_t r = 0; r < s.height; ++r) {
    const int64_t y = s.y + r;
    for (int64_t c = 0; c < s.width; ++c, to += kChannels) {
      const int64_t x = s.x + c;
      if (y < 0 || y >= s.rows || x < 0 || x >= s.columns) {
        std::fill_n(to, kChannels, 0.0f);
        continue;
      }
      const T* const from = picture + (y * s.columns + x) * s.pixel;
      if (!full) std::fill_n(to, kChannels, 0.0f);
      for_each_vector(0, full ? kChannels : s.channels,
                      [&](auto t, int64_t k) { put(t, get(t, from + k), to + k); });
    }
  }
}
void rows_dispatch(const DepthwiseRows& s, float* to) {
  with_float(s.type, [&](auto zero) { rows_typed<decltype(zero)>(s, to); });
}

template <int kPixels, class T>
HWY_INLINE void pixels_of(const DepthwiseProduct& s, int64_t i, int64_t k) {
  CAIRN_VECTORS(sum, [kPixels]);
  const V start = s.bias != nullptr ? get(Full(), s.bias + k) : hn::Zero(DF());
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) sum[p] = start;
  const float* const x = s.x + i * s.step + k;
  for (int64_t t = 0; t < s.taps; ++t) {
    const V w = get(Full(), s.w + t * kChannels + k);
    const float* const at = x + s.offsets[t];
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) sum[p] = hn::MulAdd(get(Full(), at + p * s.step), w, sum[p]);
  }
  T* const y = static_cast<T*>(s.y) + i * s.y_step + k;
  const int64_t left = s.channels - k;
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p)
    if (left >= lanes())
      put(Full(), sum[p], y + p * s.y_step);
    else
      put(Part{static_cast<size_t>(left)}, sum[p], y + p * s.y_step);
}
void row_dispatch(const DepthwiseProduct& s) {
  with_float(s.type, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t k = 0; k < s.channels; k += lanes()) {
      int64_t i = 0;
      for (; i + kSums <= s.pixels; i += kSums) pixels_of<kSums, T>(s, i, k);
      for (; i < s.pixels; ++i) pixels_of<1, T>(s, i, k);
    }
  });
}

template <int kTaps>
HWY_INLINE void sums_of(const DepthwiseSums& s, int64_t t, int64_t k) {
  CAIRN_VECTORS(sum, [kTaps]);
  const float* x[kTaps];
#pragma GCC unroll 8
  for (int j = 0; j < kTaps; ++j) sum[j] = hn::Zero(DF()), x[j] = s.x + s.offsets[t + j] + k;
  const float* dy = s.dy + k;
  for (int64_t r = 0; r < s.rows; ++r)
    for (int64_t i = 0; i < s.pixels; ++i, dy += kChannels) {
      const V g = get(Full(), dy);
      const int64_t at = r * s.down + i * s.step;
#pragma GCC unroll 8
      for (int j = 0; j < kTaps; ++j) sum[j] = hn::MulAdd(get(Full(), x[j] + at), g, sum[j]);
    }
#pragma GCC unroll 8
  for (int j = 0; j < kTaps; ++j) {
    float* const to = s.sums + (t + j) * kChannels + k;
    put(Full(), add(get(Full(), to), sum[j]), to);
  }
}
void sums_dispatch(const DepthwiseSums& s) {
  for (int64_t k = 0; k < kChannels; k += lanes()) {
    int64_t t = 0;
    for (; t + kSums <= s.taps; t += kSums) sums_of<kSums>(s, t, k);
    for (; t < s.taps; ++t) sums_of<1>(s, t, k);
  }
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(rows_dispatch);
HWY_EXPORT(row_dispatch);
HWY_EXPORT(sums_dispatch);
void depthwise_rows(const DepthwiseRows& s, float* to) { CAIRN_DISPATCH(rows_dispatch)(s, to); }
void depthwise_row(const DepthwiseProduct& s) { CAIRN_DISPATCH(row_dispatch)(s); }
void depthwise_sums(const DepthwiseSums& s) { CAIRN_DISPATCH(sums_dispatch)(s); }
}  // namespace cairn::kernels::cpu
#endif
