#include "kernels/cpu/conv/shape.h"

#include <algorithm>

#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

ConvShape shape_of(const Windows& w, int64_t outputs, const Attrs& attrs, bool transposed) {
  return {w, w.channels, outputs, attrs.integer("groups", 1), transposed};
}
const Attrs& attrs_of(const Signature& s) {
  static const Attrs kNone;
  return s.attrs != nullptr ? *s.attrs : kNone;
}

// The taps of an axis and where they read, for targets `first`, first + step, ...
struct AxisPass {
  Pass::Axis axis;
  std::vector<std::pair<int64_t, int64_t>> taps;  // offset, index
};
AxisPass straight(const WindowAxis& w) {
  AxisPass pass{{0, 1, w.out, w.stride}, {}};
  for (int64_t t = 0; t < w.window; ++t) pass.taps.emplace_back(w.at(0, t), t);
  return pass;
}
std::vector<AxisPass> by_remainder(const WindowAxis& w) {
  std::vector<AxisPass> all;
  for (int64_t r = 0; r < std::min(w.stride, w.in); ++r) {
    AxisPass pass{{r, w.stride, (w.in - r + w.stride - 1) / w.stride, 1}, {}};
    for (int64_t t = w.window - 1; t >= 0; --t)
      if (const int64_t at = r + w.before - t * w.dilation; at % w.stride == 0)
        pass.taps.emplace_back(at / w.stride, t);
    all.push_back(std::move(pass));
  }
  return all;
}

}  // namespace

std::vector<Pass> ConvShape::passes() const {
  const std::vector<AxisPass> ys = transposed ? by_remainder(windows.h) : std::vector{straight(windows.h)},
                              xs = transposed ? by_remainder(windows.w) : std::vector{straight(windows.w)};
  std::vector<Pass> all;
  for (const AxisPass& y : ys)
    for (const AxisPass& x : xs) {
      Pass pass{y.axis, x.axis, {}};
      for (const auto& [dy, ky] : y.taps)
        for (const auto& [dx, kx] : x.taps) pass.taps.push_back({ky * windows.w.window + kx, dy, dx});
      all.push_back(std::move(pass));
    }
  return all;
}

bool conv_fits(const Signature& s) {
  return fast_float(s.in[0]) && fast_float(s.in[1]) && s.out[0].dtype == s.in[0].dtype &&
         (!s.has_in(2) || plain_f32(s.in[2]));
}
bool conv_weight_fits(const Signature& s) {
  return fast_float(s.in[0]) && s.in[1].dtype == s.in[0].dtype && plain_f32(s.out[0]) &&
         (!s.has_out(1) || plain_f32(s.out[1]));
}

ConvShape conv_shape(const Signature& s) {
  return shape_of(conv_windows(s.in[0].shape, s.in[1].shape, attrs_of(s)), s.in[1].shape[0], attrs_of(s),
                  false);
}
ConvShape conv_transpose_shape(const Signature& s) {
  return shape_of(conv_windows(s.out[0].shape, s.in[1].shape, attrs_of(s)), s.in[1].shape[0], attrs_of(s),
                  true);
}
ConvShape conv_weight_shape(const Signature& s) {
  return shape_of(make_windows(s.in[0].shape, attrs_of(s).list("kernel"), attrs_of(s)), s.in[1].shape.last(),
                  attrs_of(s), false);
}

void conv_bias_gradient(const Call& call, DType type, int64_t pixels, int64_t outputs) {
  float* const db = output<float>(call, 1);
  if (db == nullptr) return;
  const char* const dy = input<const char>(call, 1);
  parallel_for(outputs, 64, [&](int64_t c0, int64_t c1, int) {
    column_sums(type, dy + c0 * dtype_bytes(type), outputs, pixels, c1 - c0, db + c0, accumulates(call, 1));
  });
}

}  // namespace cairn::kernels::cpu
