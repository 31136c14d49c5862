// Ops that are sums of pixels with weights by row and by column: average_pool and resize, and the gradients of both and of patches.
// A gradient is summed pixel by pixel, too: which outputs read a pixel is worked out when the kernel is made.
#include <algorithm>

#include "kernels/cpu/pictures/pixels.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

// What the outputs of an axis read: output o element i, with a weight, at place `tap` of its window.
struct Reading {
  int64_t o, i, tap;
  double weight;
};
using Readings = std::vector<Reading>;

AxisTerms of_outputs(const Readings& all, int64_t outputs, int64_t step) {
  AxisTerms terms(static_cast<size_t>(outputs));
  for (const Reading& r : all)
    terms[static_cast<size_t>(r.o)].push_back({r.i * step, static_cast<float>(r.weight)});
  return terms;
}
// Of the elements that are read; tap_step: from what one place of a window made to what the next did.
AxisTerms of_inputs(const Readings& all, int64_t inputs, int64_t step, int64_t tap_step = 0) {
  AxisTerms terms(static_cast<size_t>(inputs));
  for (const Reading& r : all)
    terms[static_cast<size_t>(r.i)].push_back({r.o * step + r.tap * tap_step, static_cast<float>(r.weight)});
  return terms;
}

Readings windows_of(const WindowAxis& a) {
  Readings all;
  for (int64_t o = 0; o < a.out; ++o)
    for (int64_t tap = 0; tap < a.taps(o); ++tap)
      if (a.inside(a.at(o, tap))) all.push_back({o, a.at(o, tap), tap, 1});
  return all;
}

Readings averages_of(const WindowAxis& a, bool count_padding) {
  Readings all = windows_of(a);
  std::vector<int64_t> counts(static_cast<size_t>(a.out));
  for (const Reading& r : all) ++counts[static_cast<size_t>(r.o)];
  for (Reading& r : all)
    r.weight = 1 / static_cast<double>(count_padding ? a.taps(r.o) : counts[static_cast<size_t>(r.o)]);
  return all;
}

Readings resized(int64_t in, int64_t out, const Attrs& attrs) {
  const bool bilinear = attrs.word("mode", "nearest") == "bilinear";
  const bool align_corners = attrs.integer("align_corners") != 0;
  Readings all;
  for (int64_t o = 0; o < out; ++o) {
    if (!bilinear) {
      all.push_back({o, nearest_from(o, in, out), 0, 1});
      continue;
    }
    const double from = resized_from(o, in, out, align_corners);
    const int64_t first = std::min(static_cast<int64_t>(from), in - 1), second = std::min(first + 1, in - 1);
    const double weight = from - static_cast<double>(first);
    all.push_back({o, first, 0, 1 - weight});
    if (weight != 0) all.push_back({o, second, 0, weight});
  }
  return all;
}

// The sums of x's pixels that y's are, which have so many channels.
std::unique_ptr<Kernel> make_sums(const Signature& s, AxisTerms rows, AxisTerms columns, int64_t channels) {
  const Shape &x = s.in[0].shape, &y = s.out[0].shape;
  const DType type = s.in[0].dtype;
  const int64_t height = static_cast<int64_t>(rows.size()),
                width = static_cast<int64_t>(columns.size()) * channels,
                sample = x.elements() / x[0] * dtype_bytes(type);
  return make_kernel([=, n = y[0], rows = std::move(rows), columns = std::move(columns)](const Call& call) {
    parallel_for(n * height, row_grain(width), [&](int64_t b, int64_t e, int) {
      for (int64_t row = b; row < e; ++row)
        sum_pixels(type, input<const char>(call, 0) + row / height * sample,
                   rows[static_cast<size_t>(row % height)], columns, channels,
                   output<char>(call, 0) + row * width * dtype_bytes(type));
    });
  });
}

std::unique_ptr<Kernel> make_average(const Signature& s, bool gradient) {
  if (!uniform_fast(s)) return nullptr;
  const Windows all =
      make_windows((gradient ? s.out : s.in)[0].shape, s.attrs->list("kernel"), *s.attrs, true);
  const bool count_padding = s.attrs->integer("count_padding", 1) != 0;
  const Readings h = averages_of(all.h, count_padding), w = averages_of(all.w, count_padding);
  const int64_t c = all.channels;
  return gradient ? make_sums(s, of_inputs(h, all.h.in, all.w.out * c), of_inputs(w, all.w.in, c), c)
                  : make_sums(s, of_outputs(h, all.h.out, all.w.in * c), of_outputs(w, all.w.out, c), c);
}

std::unique_ptr<Kernel> make_resize_any(const Signature& s, bool gradient) {
  if (!uniform_fast(s)) return nullptr;
  const Shape &x = (gradient ? s.out : s.in)[0].shape, &y = (gradient ? s.in : s.out)[0].shape;
  const int64_t h_in = x.rank == 4 ? x[1] : 1, h_out = y.rank == 4 ? y[1] : 1, c = x.last();
  const Readings h = resized(h_in, h_out, *s.attrs), w = resized(x[-2], y[-2], *s.attrs);
  return gradient ? make_sums(s, of_inputs(h, h_in, y[-2] * c), of_inputs(w, x[-2], c), c)
                  : make_sums(s, of_outputs(h, h_out, x[-2] * c), of_outputs(w, y[-2], c), c);
}

}  // namespace

std::unique_ptr<Kernel> make_average_pool(const Signature& s) { return make_average(s, false); }
std::unique_ptr<Kernel> make_average_pool_grad(const Signature& s) { return make_average(s, true); }
std::unique_ptr<Kernel> make_resize(const Signature& s) { return make_resize_any(s, false); }
std::unique_ptr<Kernel> make_resize_grad(const Signature& s) { return make_resize_any(s, true); }

std::unique_ptr<Kernel> make_patches_grad(const Signature& s) {
  if (!uniform_fast(s)) return nullptr;
  const Windows all = make_windows(s.out[0].shape, s.attrs->list("kernel"), *s.attrs);
  WindowAxis w = all.w;
  int64_t c = all.channels;
  if (w.window == w.stride && w.dilation == 1 && w.before == 0 && w.in == w.out * w.window) {
    c *= w.window;  // windows share rows out: what one has of a row counts as a pixel
    w.in = w.out, w.window = w.stride = 1;
  }
  const int64_t patch = all.taps() * all.channels;
  return make_sums(s, of_inputs(windows_of(all.h), all.h.in, w.out * patch, w.window * c),
                   of_inputs(windows_of(w), w.in, patch, c), c);
}

}  // namespace cairn::kernels::cpu
