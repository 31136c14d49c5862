// Windows over the spatial axes on the device (runtime/base/spatial.h), and which of them hold an element: gradients gather what
// theirs is made of.
#pragma once
#include "kernels/cuda/common/group.h"
#include "runtime/base/spatial.h"

namespace cairn::kernels::cuda {

struct Range {
  int begin, end;
};

struct AxisWindows {
  int in, out;
  int window, stride, dilation, before;
  bool adaptive;

  // The elements of window o that are there, where windows have no gaps.
  __device__ __forceinline__ Range elements(int o) const {
    if (adaptive) return {o * in / out, ((o + 1) * in + out - 1) / out};
    const int begin = o * stride - before, end = begin + window;
    return {begin < 0 ? 0 : begin, end < in ? end : in};
  }
  // Of an adaptive window, or any with its padding.
  __device__ __forceinline__ int full(int o) const {
    if (!adaptive) return window;
    const Range own = elements(o);
    return own.end - own.begin;
  }
  // The windows without gaps that hold element i.
  __device__ __forceinline__ Range windows_of(int i) const {
    if (adaptive) return {i * out / in, ((i + 1) * out - 1) / in + 1};
    const int at = i + before, first = at - window + 1, end = at / stride + 1;
    return {first <= 0 ? 0 : (first + stride - 1) / stride, end < out ? end : out};
  }
  // The element that tap t of window o lies on; may be outside.
  __device__ __forceinline__ int at(int o, int t) const { return o * stride - before + t * dilation; }
  // The window whose tap t lies on element i; -1: none.
  __device__ __forceinline__ int window_at(int i, int t) const {
    const int from = i + before - t * dilation;
    return from >= 0 && from % stride == 0 && from / stride < out ? from / stride : -1;
  }
};

struct PictureWindows {
  int n, channels;
  AxisWindows h, w;
};

// False: too large for the kernels.
inline bool picture_windows(const Windows& all, PictureWindows* to) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (all.pixels_in() > kMost || all.pixels_out() > kMost || all.channels > kMost) return false;
  const auto axis = [](const WindowAxis& a) {
    return AxisWindows{static_cast<int>(a.in),
                       static_cast<int>(a.out),
                       static_cast<int>(a.window),
                       static_cast<int>(a.stride),
                       static_cast<int>(a.dilation),
                       static_cast<int>(a.before),
                       a.adaptive};
  };
  for (const WindowAxis* a : {&all.h, &all.w})
    if (a->span() + a->in + a->stride > kMost || (a->adaptive && (a->in + 1) * (a->out + 1) > kMost))
      return false;
  *to = {static_cast<int>(all.n), static_cast<int>(all.channels), axis(all.h), axis(all.w)};
  return true;
}

// An element (the first of a group of neighbouring channels) of pictures of h x w pixels.
struct Element {
  int n, h, w, channel;
};
template <int kCount>
__device__ __forceinline__ Element element_of(int64_t group, int h, int w, int channels) {
  const int each = channels / kCount;
  const auto pixel = static_cast<int>(group / each);
  const int line = pixel / w, n = line / h;
  return {n, line - n * h, pixel - line * w,
          static_cast<int>(group - static_cast<int64_t>(pixel) * each) * kCount};
}
__device__ __forceinline__ int64_t offset_of(int n, int h, int w, int height, int width, int64_t channels) {
  return ((static_cast<int64_t>(n) * height + h) * width + w) * channels;
}

inline constexpr int kPictureThreads = 256;
__device__ __forceinline__ int64_t own_group() {
  return static_cast<int64_t>(blockIdx.x) * kPictureThreads + threadIdx.x;
}
// body(T{}, how many channels a thread takes): as many as go into 16 bytes, or 1.
template <class Body>
std::unique_ptr<Kernel> with_channels(DType dtype, int64_t channels, const Body& body) {
  return with_float(dtype, [&](auto zero) {
    constexpr int kMost = kGroupOf<decltype(zero)>;
    return channels % kMost == 0 ? body(zero, std::integral_constant<int, kMost>())
                                 : body(zero, std::integral_constant<int, 1>());
  });
}
inline LaunchSize picture_size(int64_t elements, int each) {
  return {.blocks = (elements / each + kPictureThreads - 1) / kPictureThreads, .threads = kPictureThreads};
}

}  // namespace cairn::kernels::cuda
