// resize and its gradient. Where an element is read is a fraction of whole numbers: places and weights are exact but for one rounding.
#include "kernels/cuda/pictures/windows.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

enum class Mode : int { kNearest, kBilinear, kAligned };  // kAligned: bilinear between corners

struct Between {
  int low, high;
  float weight;  // of high
};

struct ResizeAxis {
  int64_t in, out;
  Mode mode;

  // Where element o is read: at place(o) / over().
  __device__ __forceinline__ int64_t over() const {
    return mode == Mode::kNearest ? out : mode == Mode::kBilinear ? 2 * out : out > 1 ? out - 1 : 1;
  }
  __device__ __forceinline__ int64_t place(int64_t o) const {
    if (mode == Mode::kNearest) return o * in;
    const int64_t at = mode == Mode::kBilinear ? (2 * o + 1) * in - out : o * (in - 1);
    return at < 0 ? 0 : at;
  }
  __device__ __forceinline__ float weight(int64_t past) const {
    return mode == Mode::kNearest ? 0.0f : static_cast<float>(past) / static_cast<float>(over());
  }
  __device__ __forceinline__ Between from(int64_t o) const {
    const int64_t at = place(o), low = at / over();
    if (low >= in - 1) return {static_cast<int>(in - 1), static_cast<int>(in - 1), 0};
    return {static_cast<int>(low), static_cast<int>(low + 1), weight(at - low * over())};
  }
  // How much of element i is in element o of y.
  __device__ __forceinline__ float share(int i, int64_t o) const {
    const int64_t past = place(o) - i * over();
    if (past >= over() || past <= -over()) return 0;
    if (past < 0) return weight(past + over());
    return i == in - 1 ? 1.0f : 1 - weight(past);
  }
  // All elements of y that have something of element i, and perhaps some more at both ends.
  __device__ __forceinline__ Range made_of(int64_t i) const {
    int64_t first = 0, last = out - 1;
    if (mode == Mode::kNearest) {
      first = i * out / in, last = ((i + 1) * out - 1) / in;
    } else if (mode == Mode::kBilinear) {
      first = ((2 * i - 1) * out - in) / (2 * in) - 1, last = ((2 * i + 3) * out - in) / (2 * in) + 1;
    } else if (in > 1) {
      first = (i - 1) * (out - 1) / (in - 1) - 1, last = (i + 1) * (out - 1) / (in - 1) + 1;
    }
    if (i == 0 || first < 0) first = 0;
    if (i == in - 1 || last > out - 1) last = out - 1;
    return {static_cast<int>(first), static_cast<int>(last) + 1};
  }
};

struct Resize {
  int channels;
  ResizeAxis h, w;
};

template <class T, int kCount>
__global__ void __launch_bounds__(kPictureThreads)
    resize(Resize z, int64_t groups, const T* __restrict__ x, T* y) {
  const int64_t g = own_group();
  if (g >= groups) return;
  const int height = static_cast<int>(z.h.in), width = static_cast<int>(z.w.in);
  const Element e = element_of<kCount>(g, static_cast<int>(z.h.out), static_cast<int>(z.w.out), z.channels);
  const Between h = z.h.from(e.h), w = z.w.from(e.w);
  const auto at = [&](int of_h, int of_w) {
    return read<kCount>(x + offset_of(e.n, of_h, of_w, height, width, z.channels) + e.channel);
  };
  Group<kCount> out = at(h.low, w.low);
  if (w.weight != 0) {
    const Group<kCount> right = at(h.low, w.high);
    for (int i = 0; i < kCount; ++i) out.at[i] = (1 - w.weight) * out.at[i] + w.weight * right.at[i];
  }
  if (h.weight != 0) {
    Group<kCount> below = at(h.high, w.low);
    if (w.weight != 0) {
      const Group<kCount> right = at(h.high, w.high);
      for (int i = 0; i < kCount; ++i) below.at[i] = (1 - w.weight) * below.at[i] + w.weight * right.at[i];
    }
    for (int i = 0; i < kCount; ++i) out.at[i] = (1 - h.weight) * out.at[i] + h.weight * below.at[i];
  }
  write(y + g * kCount, out);
}

template <class T, int kCount>
__global__ void __launch_bounds__(kPictureThreads)
    resize_grad(Resize z, int64_t groups, const T* __restrict__ dy, T* dx) {
  const int64_t g = own_group();
  if (g >= groups) return;
  const Element e = element_of<kCount>(g, static_cast<int>(z.h.in), static_cast<int>(z.w.in), z.channels);
  const Range h = z.h.made_of(e.h), w = z.w.made_of(e.w);
  Group<kCount> sum = {};
  for (int at_h = h.begin; at_h < h.end; ++at_h) {
    const float share = z.h.share(e.h, at_h);
    if (share == 0) continue;
    for (int at_w = w.begin; at_w < w.end; ++at_w) {
      const float factor = share * z.w.share(e.w, at_w);
      if (factor == 0) continue;
      const auto v = read<kCount>(
          dy + offset_of(e.n, at_h, at_w, static_cast<int>(z.h.out), static_cast<int>(z.w.out), z.channels) +
          e.channel);
      for (int i = 0; i < kCount; ++i) sum.at[i] = fmaf(factor, v.at[i], sum.at[i]);
    }
  }
  write(dx + g * kCount, sum);
}

std::unique_ptr<Kernel> make_resize_of(const Signature& s, bool gradient) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  const Shape &x = gradient ? s.out[0].shape : s.in[0].shape, &y = gradient ? s.in[0].shape : s.out[0].shape;
  const Mode mode = s.attrs->word("mode", "nearest") == "nearest" ? Mode::kNearest
                    : s.attrs->integer("align_corners") != 0      ? Mode::kAligned
                                                                  : Mode::kBilinear;
  const bool line = spatial_axes(x) == 1;
  const Resize z{static_cast<int>(x.last()),
                 line ? ResizeAxis{1, 1, Mode::kNearest} : ResizeAxis{x[1], y[1], mode},
                 {x[-2], y[-2], mode}};
  const int64_t count = s.out[0].shape.elements();
  constexpr int64_t kMost = int64_t{1} << 30;
  if (x.rows() > kMost || y.rows() > kMost || x.last() > kMost) return nullptr;
  return with_channels(s.in[0].dtype, z.channels, [&](auto zero, auto each) {
    using T = decltype(zero);
    constexpr int kCount = decltype(each)::value;
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), gradient ? resize_grad<T, kCount> : resize<T, kCount>,
             picture_size(count, kCount), z, count / kCount, input<const T>(call, 0), output<T>(call, 0));
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> make_resize(const Signature& s) { return make_resize_of(s, false); }
std::unique_ptr<Kernel> make_resize_grad(const Signature& s) { return make_resize_of(s, true); }

}  // namespace cairn::kernels::cuda
