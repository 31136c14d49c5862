// Pools and their gradients: a thread has an element, or neighbouring channels of one.
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/pictures/windows.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

// The largest of each window, NaN above all; of equal ones the first.
template <class T>
__global__ void __launch_bounds__(kPictureThreads)
    max_pool(PictureWindows z, int64_t count, const T* __restrict__ x, T* y, int32_t* places) {
  const int64_t i = own_group();
  if (i >= count) return;
  const Element e = element_of<1>(i, z.h.out, z.w.out, z.channels);
  const Range h = z.h.elements(e.h), w = z.w.elements(e.w);
  float best = -INFINITY;
  int place = -1;
  for (int at_h = h.begin; at_h < h.end; ++at_h)
    for (int at_w = w.begin; at_w < w.end; ++at_w) {
      const float v = load(x + offset_of(e.n, at_h, at_w, z.h.in, z.w.in, z.channels) + e.channel);
      if (place >= 0 && !(v > best || (v != v && best == best))) continue;
      best = v;
      place = at_h * z.w.in + at_w;
    }
  if (y != nullptr) store(y + i, best);
  if (places != nullptr) places[i] = place;
}

// Of the gradient no window is known: the lines (columns) of x that the places of each line (column) of y lie in say which of
// these an element can be in. Blocks have a line or a column of y each.
__global__ void __launch_bounds__(kPictureThreads)
    reach_of_places(int n, int out_h, int out_w, int in_w, int channels, const int32_t* __restrict__ places,
                    Range* reach) {
  CAIRN_SHARED float scratch[kWarp];
  const int own = static_cast<int>(blockIdx.x);
  const bool line = own < out_h;
  const int others = line ? out_w : out_h;
  const int64_t count = static_cast<int64_t>(n) * others * channels;
  float least = 0,
        most = 0;  // negated and as it is, both from 0 on: whole numbers below 2^24, which float32 has
  bool any = false;
  for (int64_t i = threadIdx.x; i < count; i += kPictureThreads) {
    const int64_t rest = i / channels;
    const int channel = static_cast<int>(i - rest * channels), sample = static_cast<int>(rest / others),
              other = static_cast<int>(rest - static_cast<int64_t>(sample) * others);
    const int place =
        places[offset_of(sample, line ? own : other, line ? other : own - out_h, out_h, out_w, channels) +
               channel];
    const auto at = static_cast<float>(line ? place / in_w : place % in_w);
    least = any ? fmaxf(least, -at) : -at;
    most = any ? fmaxf(most, at) : at;
    any = true;
  }
  least = block_max(any ? least : -INFINITY, scratch);
  most = block_max(any ? most : -INFINITY, scratch);
  if (threadIdx.x == 0) reach[own] = {static_cast<int>(-least), static_cast<int>(most) + 1};
}
// The lines (columns) of y between the first and the last that reach each line (column) of x.
__global__ void __launch_bounds__(kPictureThreads)
    reached_from(int out_h, int out_w, int in_h, int in_w, const Range* __restrict__ reach, Range* from) {
  const int64_t i = own_group();
  if (i >= in_h + in_w) return;
  const bool line = i < in_h;
  const int at = static_cast<int>(line ? i : i - in_h), count = line ? out_h : out_w;
  const Range* const own = reach + (line ? 0 : out_h);
  Range found = {0, 0};
  for (int o = 0; o < count; ++o) {
    if (at < own[o].begin || at >= own[o].end) continue;
    if (found.end == 0) found.begin = o;
    found.end = o + 1;
  }
  from[i] = found;
}

template <class T>
__global__ void __launch_bounds__(kPictureThreads)
    max_pool_grad(int in_h, int in_w, int out_h, int out_w, int channels, int64_t count,
                  const T* __restrict__ dy, const int32_t* __restrict__ places,
                  const Range* __restrict__ from, T* dx) {
  const int64_t i = own_group();
  if (i >= count) return;
  const Element e = element_of<1>(i, in_h, in_w, channels);
  const Range h = from[e.h], w = from[in_h + e.w];
  const int place = e.h * in_w + e.w;
  float sum = 0;
  CAIRN_UNROLL_BY(1)
  for (int at_h = h.begin; at_h < h.end; ++at_h) {
    int64_t at = offset_of(e.n, at_h, w.begin, out_h, out_w, channels) + e.channel;
    CAIRN_UNROLL_BY(2)
    for (int at_w = w.begin; at_w < w.end; ++at_w, at += channels)
      if (places[at] == place) sum += load(dy + at);
  }
  store(dx + i, sum);
}

// What the sum over a window is divided by.
__device__ __forceinline__ float window_elements(const PictureWindows& z, bool padding, int h, int w) {
  if (padding) return static_cast<float>(z.h.full(h) * z.w.full(w));
  const Range of_h = z.h.elements(h), of_w = z.w.elements(w);
  return static_cast<float>((of_h.end - of_h.begin) * (of_w.end - of_w.begin));
}

template <class T, int kCount>
__global__ void __launch_bounds__(kPictureThreads)
    average_pool(PictureWindows z, bool padding, int64_t groups, const T* __restrict__ x, T* y) {
  const int64_t g = own_group();
  if (g >= groups) return;
  const Element e = element_of<kCount>(g, z.h.out, z.w.out, z.channels);
  const Range h = z.h.elements(e.h), w = z.w.elements(e.w);
  Group<kCount> sum = {};
  for (int at_h = h.begin; at_h < h.end; ++at_h)
    for (int at_w = w.begin; at_w < w.end; ++at_w) {
      const auto v = read<kCount>(x + offset_of(e.n, at_h, at_w, z.h.in, z.w.in, z.channels) + e.channel);
      for (int i = 0; i < kCount; ++i) sum.at[i] += v.at[i];
    }
  const float count = window_elements(z, padding, e.h, e.w);
  for (int i = 0; i < kCount; ++i) sum.at[i] /= count;
  write(y + g * kCount, sum);
}

template <class T, int kCount>
__global__ void __launch_bounds__(kPictureThreads)
    average_pool_grad(PictureWindows z, bool padding, int64_t groups, const T* __restrict__ dy, T* dx) {
  const int64_t g = own_group();
  if (g >= groups) return;
  const Element e = element_of<kCount>(g, z.h.in, z.w.in, z.channels);
  const Range h = z.h.windows_of(e.h), w = z.w.windows_of(e.w);
  Group<kCount> sum = {};
  for (int at_h = h.begin; at_h < h.end; ++at_h)
    for (int at_w = w.begin; at_w < w.end; ++at_w) {
      const float count = window_elements(z, padding, at_h, at_w);
      const auto v = read<kCount>(dy + offset_of(e.n, at_h, at_w, z.h.out, z.w.out, z.channels) + e.channel);
      for (int i = 0; i < kCount; ++i) sum.at[i] += v.at[i] / count;
    }
  write(dx + g * kCount, sum);
}

bool pool_of(const Signature& s, const TensorDesc& x, PictureWindows* z) {
  if (!fast_float(s.in[0]) || x.dtype != s.in[0].dtype) return false;
  return picture_windows(make_windows(x.shape, s.attrs->list("kernel"), *s.attrs, true), z);
}

std::unique_ptr<Kernel> make_average(const Signature& s, bool gradient) {
  PictureWindows z;
  const TensorDesc& x = gradient ? s.out[0] : s.in[0];
  if (!pool_of(s, x, &z) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  const bool padding = s.attrs->integer("count_padding", 1) != 0;
  const int64_t count = s.out[0].shape.elements();
  return with_channels(x.dtype, z.channels, [&](auto zero, auto each) {
    using T = decltype(zero);
    constexpr int kCount = decltype(each)::value;
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), gradient ? average_pool_grad<T, kCount> : average_pool<T, kCount>,
             picture_size(count, kCount), z, padding, count / kCount, input<const T>(call, 0),
             output<T>(call, 0));
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> make_max_pool(const Signature& s) {
  PictureWindows z;
  if (!pool_of(s, s.in[0], &z) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  const int64_t count = s.out[0].shape.elements();
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), max_pool<T>, picture_size(count, 1), z, count, input<const T>(call, 0),
             output<T>(call, 0), output<int32_t>(call, 1));
    });
  });
}

std::unique_ptr<Kernel> make_max_pool_grad(const Signature& s) {
  if (!fast_float(s.in[0]) || !plain_i32(s.in[1]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  // Sizes of x and y alone: one window over all of x.
  PictureWindows x, y;
  if (!picture_windows(make_windows(s.out[0].shape, {1}, {}), &x) ||
      !picture_windows(make_windows(s.in[0].shape, {1}, {}), &y))
    return nullptr;
  const int64_t count = s.out[0].shape.elements();
  if (int64_t{x.h.in} + x.w.in > (1 << 24)) return nullptr;
  Workspace space;
  const int64_t reach_at = space.add((y.h.in + y.w.in) * static_cast<int64_t>(sizeof(Range))),
                from_at = space.add((x.h.in + x.w.in) * static_cast<int64_t>(sizeof(Range)));
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          const cudaStream_t stream = stream_of(call);
          const auto* places = input<const int32_t>(call, 1);
          auto *reach = Workspace::at<Range>(call, reach_at), *from = Workspace::at<Range>(call, from_at);
          launch(stream, reach_of_places, {.blocks = y.h.in + y.w.in, .threads = kPictureThreads}, y.n,
                 y.h.in, y.w.in, x.w.in, x.channels, places, reach);
          launch(stream, reached_from, picture_size(x.h.in + x.w.in, 1), y.h.in, y.w.in, x.h.in, x.w.in,
                 reach, from);
          launch(stream, max_pool_grad<T>, picture_size(count, 1), x.h.in, x.w.in, y.h.in, y.w.in, x.channels,
                 count, input<const T>(call, 0), places, from, output<T>(call, 0));
        },
        space.bytes());
  });
}

std::unique_ptr<Kernel> make_average_pool(const Signature& s) { return make_average(s, false); }
std::unique_ptr<Kernel> make_average_pool_grad(const Signature& s) { return make_average(s, true); }

}  // namespace cairn::kernels::cuda
