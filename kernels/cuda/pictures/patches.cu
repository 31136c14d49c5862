// patches, its gradient, and pad.
#include "kernels/cuda/pictures/windows.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

// A channel (neighbouring ones) of a tap of a window; neighbouring threads have neighbouring channels, then taps.
template <class T, int kCount>
__global__ void __launch_bounds__(kPictureThreads)
    patches(PictureWindows z, int64_t groups, const T* __restrict__ x, T* y) {
  const int64_t g = own_group();
  if (g >= groups) return;
  const int taps = z.h.window * z.w.window;
  const Element e = element_of<kCount>(g, z.h.out, z.w.out, taps * z.channels);
  const int tap = e.channel / z.channels, tap_h = tap / z.w.window;
  const int at_h = z.h.at(e.h, tap_h), at_w = z.w.at(e.w, tap - tap_h * z.w.window);
  Group<kCount> v = {};
  if (at_h >= 0 && at_h < z.h.in && at_w >= 0 && at_w < z.w.in)
    v = read<kCount>(x + offset_of(e.n, at_h, at_w, z.h.in, z.w.in, z.channels) + e.channel -
                     tap * z.channels);
  write(y + g * kCount, v);
}

template <class T, int kCount>
__global__ void __launch_bounds__(kPictureThreads)
    patches_grad(PictureWindows z, int64_t groups, const T* __restrict__ dy, T* dx) {
  const int64_t g = own_group();
  if (g >= groups) return;
  const Element e = element_of<kCount>(g, z.h.in, z.w.in, z.channels);
  const int64_t row = static_cast<int64_t>(z.h.window) * z.w.window * z.channels;
  Group<kCount> sum = {};
  for (int i = 0; i < z.h.window; ++i) {
    const int h = z.h.window_at(e.h, i);
    if (h < 0) continue;
    for (int j = 0; j < z.w.window; ++j) {
      const int w = z.w.window_at(e.w, j);
      if (w < 0) continue;
      const auto v = read<kCount>(dy + offset_of(e.n, h, w, z.h.out, z.w.out, row) +
                                  static_cast<int64_t>(i * z.w.window + j) * z.channels + e.channel);
      for (int k = 0; k < kCount; ++k) sum.at[k] += v.at[k];
    }
  }
  write(dx + g * kCount, sum);
}

std::unique_ptr<Kernel> make_patches_of(const Signature& s, bool gradient) {
  const Shape& x = gradient ? s.out[0].shape : s.in[0].shape;
  PictureWindows z;
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  const Windows all = make_windows(x, s.attrs->list("kernel"), *s.attrs);
  if (!picture_windows(all, &z) || all.taps() * all.channels > (int64_t{1} << 30)) return nullptr;
  const int64_t count = s.out[0].shape.elements();
  return with_channels(s.in[0].dtype, z.channels, [&](auto zero, auto each) {
    using T = decltype(zero);
    constexpr int kCount = decltype(each)::value;
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), gradient ? patches_grad<T, kCount> : patches<T, kCount>,
             picture_size(count, kCount), z, count / kCount, input<const T>(call, 0), output<T>(call, 0));
    });
  });
}

// Of every axis: where x begins in y, and the sizes of both; the strides of x.
struct Padding {
  int rank;
  int64_t before[kMaxRank], in[kMaxRank], out[kMaxRank], strides[kMaxRank];
};

template <class T>
__global__ void __launch_bounds__(kPictureThreads)
    pad(Padding p, int64_t count, float value, const T* __restrict__ x, T* y) {
  const int64_t i = own_group();
  if (i >= count) return;
  int64_t rest = i, at = 0;
  bool inside = true;
  for (int a = p.rank - 1; a >= 0; --a) {
    const int64_t next = rest / p.out[a], own = rest - next * p.out[a] - p.before[a];
    inside = inside && own >= 0 && own < p.in[a];
    at += own * p.strides[a];
    rest = next;
  }
  if (inside)
    y[i] = x[at];
  else
    store(y + i, value);
}

}  // namespace

std::unique_ptr<Kernel> make_patches(const Signature& s) { return make_patches_of(s, false); }
std::unique_ptr<Kernel> make_patches_grad(const Signature& s) { return make_patches_of(s, true); }

std::unique_ptr<Kernel> make_pad(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  const Shape &x = s.in[0].shape, &y = s.out[0].shape;
  const std::vector<int64_t> before = s.attrs->list("before");
  Padding p{.rank = x.rank, .before = {}, .in = {}, .out = {}, .strides = {}};
  for (int64_t a = x.rank - 1, stride = 1; a >= 0; --a) {
    p.before[a] = before[static_cast<size_t>(a)];
    p.in[a] = x[static_cast<int>(a)], p.out[a] = y[static_cast<int>(a)];
    p.strides[a] = stride;
    stride *= p.in[a];
  }
  const auto value = static_cast<float>(s.attrs->real("value"));
  const int64_t count = y.elements();
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), pad<T>, picture_size(count, 1), p, count, value, input<const T>(call, 0),
             output<T>(call, 0));
    });
  });
}

}  // namespace cairn::kernels::cuda
