#include "kernels/cpu/pictures/channel_passes.h"

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pictures/channel_passes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// Rows that are read side by side: their sums are made in registers.
inline constexpr int64_t kBlock = 8;

// Calls block(row, std::integral_constant of its rows): blocks of `kBlock` rows, then single ones.
template <class Block>
HWY_INLINE void for_each_block(int64_t rows, const Block& block) {
  int64_t row = 0;
  for (; row + kBlock <= rows; row += kBlock) block(row, std::integral_constant<int64_t, kBlock>());
  for (; row < rows; ++row) block(row, std::integral_constant<int64_t, 1>());
}

// Adds kRows rows to the statistics of `before` rows.
template <int64_t kRows, class T>
void add_to_statistics(const T* x, int64_t c, int64_t before, float* shift, float* mean, float* squares) {
  const auto old = static_cast<float>(before);
  const V inverse = set(1.0f / kRows), share = set(kRows / (old + kRows)),
          between = set(old * kRows / (old + kRows));
  for_each_vector(0, c, [&](auto t, int64_t i) HWY_ATTR {
    CAIRN_VECTORS(v, [kRows]);
    const V base = get(t, shift + i);
    V sum = hn::Zero(DF()), own = sum;
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      v[r] = hn::Sub(get(t, x + r * c + i), base);
      sum = hn::Add(sum, v[r]);
    }
    const V middle = hn::Mul(sum, inverse);
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      const V d = hn::Sub(v[r], middle);
      own = hn::MulAdd(d, d, own);
    }
    const V at = get(t, mean + i), away = hn::Sub(middle, at);
    put(t, hn::MulAdd(away, share, at), mean + i);
    put(t, hn::MulAdd(hn::Mul(away, away), between, hn::Add(own, get(t, squares + i))), squares + i);
  });
}

void statistics_dispatch(const ChannelRows& z, const void* from, int64_t rows, float* statistics) {
  with_float(z.type, [&](auto zero) {
    const auto* const x = static_cast<const decltype(zero)*>(from);
    const int64_t c = z.channels;
    float *const shift = statistics, *const mean = shift + c, *const squares = mean + c;
    for_each_vector(0, c, [&](auto t, int64_t i) HWY_ATTR {
      put(t, get(t, x + i), shift + i);
      put(t, hn::Zero(DF()), mean + i);
      put(t, hn::Zero(DF()), squares + i);
    });
    for_each_block(rows, [&](int64_t row, auto count) {
      add_to_statistics<decltype(count)::value>(x + row * c, c, row, shift, mean, squares);
    });
  });
}

template <int64_t kRows, class T>
void add_to_sums(const T* dy, const T* x, int64_t c, const float* mean, float* sums) {
  for_each_vector(0, c, [&](auto t, int64_t i) HWY_ATTR {
    const V middle = get(t, mean + i);
    V sum = hn::Zero(DF()), along = sum;
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      const V d = get(t, dy + r * c + i);
      sum = hn::Add(sum, d);
      along = hn::MulAdd(d, hn::Sub(get(t, x + r * c + i), middle), along);
    }
    put(t, hn::Add(get(t, sums + i), sum), sums + i);
    put(t, hn::Add(get(t, sums + c + i), along), sums + c + i);
  });
}

void sums_dispatch(const ChannelRows& z, const void* of_dy, const void* of_x, int64_t rows, const float* mean,
                   float* sums) {
  with_float(z.type, [&](auto zero) {
    using T = decltype(zero);
    const T *const dy = static_cast<const T*>(of_dy), *const x = static_cast<const T*>(of_x);
    const int64_t c = z.channels;
    for_each_vector(0, kGradientSums * c,
                    [&](auto t, int64_t i) HWY_ATTR { put(t, hn::Zero(DF()), sums + i); });
    for_each_block(rows, [&](int64_t row, auto count) {
      add_to_sums<decltype(count)::value>(dy + row * c, x + row * c, c, mean, sums);
    });
  });
}

void scale_dispatch(const ChannelRows& z, const void* from, int64_t rows, const float* factors, void* to) {
  with_float(z.type, [&](auto zero) {
    using T = decltype(zero);
    const int64_t c = z.channels;
    const float *const mean = factors, *const factor = mean + c, *const shift = factor + c;
    for_each_block(rows, [&](int64_t row, auto count) {
      const T* const x = static_cast<const T*>(from) + row * c;
      T* const y = static_cast<T*>(to) + row * c;
      for_each_vector(0, c, [&](auto t, int64_t i) HWY_ATTR {
        const V m = get(t, mean + i), f = get(t, factor + i), s = get(t, shift + i);
#pragma GCC unroll 8
        for (int64_t r = 0; r < decltype(count)::value; ++r)
          put(t, hn::MulAdd(hn::Sub(get(t, x + r * c + i), m), f, s), y + r * c + i);
      });
    });
  });
}

void gradient_dispatch(const ChannelRows& z, const void* of_dy, const void* of_x, int64_t rows,
                       const float* factors, void* to) {
  with_float(z.type, [&](auto zero) {
    using T = decltype(zero);
    const int64_t c = z.channels;
    const float *const mean = factors, *const factor = mean + c, *const shift = factor + c,
                       *const slope = shift + c, *const outer = slope + c;
    for_each_block(rows, [&](int64_t row, auto count) {
      const T *const dy = static_cast<const T*>(of_dy) + row * c, *const x =
                                                                      static_cast<const T*>(of_x) + row * c;
      T* const dx = static_cast<T*>(to) + row * c;
      for_each_vector(0, c, [&](auto t, int64_t i) HWY_ATTR {
        const V m = get(t, mean + i), f = get(t, factor + i), s = get(t, shift + i), w = get(t, slope + i),
                o = get(t, outer + i);
#pragma GCC unroll 8
        for (int64_t r = 0; r < decltype(count)::value; ++r) {
          const V own = hn::Add(hn::Mul(get(t, dy + r * c + i), f), s);
          put(t, hn::Mul(hn::MulAdd(hn::Sub(get(t, x + r * c + i), m), w, own), o), dx + r * c + i);
        }
      });
    });
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(statistics_dispatch);
HWY_EXPORT(sums_dispatch);
HWY_EXPORT(scale_dispatch);
HWY_EXPORT(gradient_dispatch);

void channel_statistics(const ChannelRows& z, const void* x, int64_t rows, float* statistics) {
  CAIRN_DISPATCH(statistics_dispatch)(z, x, rows, statistics);
}
void channel_sums(const ChannelRows& z, const void* dy, const void* x, int64_t rows, const float* mean,
                  float* sums) {
  CAIRN_DISPATCH(sums_dispatch)(z, dy, x, rows, mean, sums);
}
void channel_scale(const ChannelRows& z, const void* x, int64_t rows, const float* factors, void* y) {
  CAIRN_DISPATCH(scale_dispatch)(z, x, rows, factors, y);
}
void channel_gradient(const ChannelRows& z, const void* dy, const void* x, int64_t rows, const float* factors,
                      void* dx) {
  CAIRN_DISPATCH(gradient_dispatch)(z, dy, x, rows, factors, dx);
}

}  // namespace cairn::kernels::cpu
#endif
