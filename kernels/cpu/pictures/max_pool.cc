// max_pool and its gradient, which adds dy up by place.
#include <algorithm>

#include "kernels/cpu/pictures/pixels.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {

std::unique_ptr<Kernel> make_max_pool(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  const DType type = s.in[0].dtype;
  const Windows all = make_windows(s.in[0].shape, s.attrs->list("kernel"), *s.attrs, true);
  const int64_t width = all.w.out * all.channels,
                sample = all.h.in * all.w.in * all.channels * dtype_bytes(type);
  return make_kernel([=](const Call& call) {
    int32_t* const places = output<int32_t>(call, 1);
    parallel_for(all.n * all.h.out, row_grain(width), [&](int64_t b, int64_t e, int) {
      for (int64_t row = b; row < e; ++row)
        max_pixels(type, all, input<const char>(call, 0) + row / all.h.out * sample, row % all.h.out,
                   output<char>(call, 0) + row * width * dtype_bytes(type),
                   places != nullptr ? places + row * width : nullptr);
    });
  });
}

namespace {

// Channels [begin, begin + count) of a sample: float32 sums by place, `stride` of them from one pixel to the next.
struct PlaceSums {
  int64_t pixels, outputs, channels;

  template <class T>
  void add(const T* dy, const int32_t* places, int64_t count, float* sums, int64_t stride) const {
    for (int64_t p = 0; p < pixels; ++p) std::fill_n(sums + p * stride, count, 0.0f);
    for (int64_t o = 0; o < outputs; ++o, dy += channels, places += channels)
      for (int64_t k = 0; k < count; ++k)
        if (const int64_t place = static_cast<uint32_t>(places[k]);
            place < pixels)  // a negative one is too large
          sums[place * stride + k] += to_float(dy[k]);
  }
};

}  // namespace

std::unique_ptr<Kernel> make_max_pool_grad(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype || s.in[1].dtype != DType::kI32) return nullptr;
  const DType type = s.in[0].dtype;
  const int64_t n = s.in[0].shape[0], c = s.in[0].shape.last(), bytes = dtype_bytes(type);
  const PlaceSums sums{s.out[0].shape.elements() / n / c, s.in[0].shape.elements() / n / c, c};
  // A thread takes some channels of a sample. Sums of 16 bits are made in float32, of so few channels that they are near.
  constexpr int64_t kLeast = 16, kNear = 256 << 10;
  const bool direct = type == DType::kF32;
  const int64_t wanted = direct ? c * n / (4 * s.threads) : kNear / sums.pixels;
  const int64_t strip = std::min(c, std::max(kLeast, wanted / kLeast * kLeast)),
                strips = (c + strip - 1) / strip;
  const int64_t buffer = direct ? 0 : sums.pixels * strip;
  return make_kernel(
      [=](const Call& call) {
        parallel_for(n * strips, row_grain(sums.pixels * strip), [&](int64_t b, int64_t e, int thread) {
          for (int64_t i = b; i < e; ++i) {
            const int64_t sample = i / strips, first = i % strips * strip, count = std::min(strip, c - first);
            const int64_t from = sample * sums.outputs * c + first, to = sample * sums.pixels * c + first;
            float* const own =
                direct ? output<float>(call, 0) + to : static_cast<float*>(call.workspace) + thread * buffer;
            const int64_t stride = direct ? c : count;
            with_float(type, [&](auto zero) {
              sums.add(input<const decltype(zero)>(call, 0) + from, input<const int32_t>(call, 1) + from,
                       count, own, stride);
            });
            if (!direct) store_pixels(type, own, sums.pixels, count, output<char>(call, 0) + to * bytes, c);
          }
        });
      },
      buffer * 4 * s.threads);
}

}  // namespace cairn::kernels::cpu
