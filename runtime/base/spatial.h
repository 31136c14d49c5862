// The geometry of ops that move a window over the spatial axes of x[N, (H,) W, C], channels last: shape rules and the
// kernels of every backend work it out alike. One spatial axis counts as a picture of one row.
#pragma once
#include <algorithm>
#include <string_view>

#include "runtime/base/attrs.h"
#include "runtime/base/tensor.h"

namespace cairn {

// One axis of x, and of what the windows make: output o reads the elements at(o, 0), at(o, 1), ... of the axis; those outside of
// [0, in) are padding.
struct WindowAxis {
  int64_t in = 1, out = 1;
  int64_t window = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding
  bool adaptive =
      false;  // the windows share the axis out: of [in * o / out, in * (o + 1) / out), rounded outwards

  int64_t begin(int64_t o) const { return adaptive ? o * in / out : o * stride - before; }
  int64_t taps(int64_t o) const { return adaptive ? ((o + 1) * in + out - 1) / out - begin(o) : window; }
  int64_t at(int64_t o, int64_t tap) const { return begin(o) + tap * dilation; }
  bool inside(int64_t i) const { return i >= 0 && i < in; }
  int64_t span() const { return dilation * (window - 1) + 1; }  // elements from a window's first to its last
};

struct Windows {
  int64_t n = 1, channels = 1;  // of x
  WindowAxis h, w;

  int64_t pixels_in() const { return n * h.in * w.in; }
  int64_t pixels_out() const { return n * h.out * w.out; }
  int64_t taps() const { return h.window * w.window; }
};

inline int spatial_axes(const Shape& x) { return x.rank - 2; }
// The sizes of x's spatial axes, in their order.
inline std::vector<int64_t> spatial_sizes(const Shape& x) {
  const auto dims = x.span();
  return {dims.begin() + 1, dims.end() - 1};
}

// What a list of one number, or of one for each of `axes`, says of an axis.
inline int64_t of_axis(const std::vector<int64_t>& list, int axis, int64_t otherwise = 1) {
  if (list.empty()) return otherwise;
  return list[list.size() == 1 ? 0 : static_cast<size_t>(axis)];
}

// Padding in front of an axis, or after it: `list` has one number, one for each axis, or two.
inline int64_t padding_of(const std::vector<int64_t>& list, int axes, int axis, bool after) {
  if (list.size() == 2 * static_cast<size_t>(axes))
    return list[static_cast<size_t>(2 * axis + (after ? 1 : 0))];
  return of_axis(list, axis, 0);
}

// Windows over x by the attributes stride, padding, dilation, and size where windows are adaptive. `window`: of each axis, or
// one number for all; empty: adaptive. stride_is_window: where no stride is said. What the attributes say must have been checked.
inline Windows make_windows(const Shape& x, const std::vector<int64_t>& window, const Attrs& attrs,
                            bool stride_is_window = false) {
  const int axes = spatial_axes(x);
  Windows all;
  all.n = x[0], all.channels = x.last();
  for (int axis = 0; axis < axes; ++axis) {
    WindowAxis& a = axis == axes - 1 ? all.w : all.h;
    a.in = x[axis + 1];
    a.adaptive = window.empty();
    if (a.adaptive) {
      a.out = of_axis(attrs.list("size"), axis);
      continue;
    }
    a.window = of_axis(window, axis);
    a.stride = of_axis(attrs.list("stride"), axis, stride_is_window ? a.window : 1);
    a.dilation = of_axis(attrs.list("dilation"), axis);
    a.before = padding_of(attrs.list("padding"), axes, axis, false);
    a.after = padding_of(attrs.list("padding"), axes, axis, true);
    a.out = (a.in + a.before + a.after - a.span()) / a.stride + 1;
  }
  return all;
}

// Of a convolution of x with w[O, (kh,) kw, C / groups].
inline Windows conv_windows(const Shape& x, const Shape& w, const Attrs& attrs) {
  return make_windows(x, spatial_sizes(w), attrs);
}

// Where resize reads element o of an axis of `out` from one of `in`: a place between two elements (torch's interpolate).
inline double resized_from(int64_t o, int64_t in, int64_t out, bool align_corners) {
  if (align_corners)
    return out == 1 ? 0.0
                    : static_cast<double>(o) * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  const double at = (static_cast<double>(o) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5;
  return std::max(at, 0.0);
}
// The nearest element in front of it, which is what mode nearest takes.
inline int64_t nearest_from(int64_t o, int64_t in, int64_t out) { return std::min(in - 1, o * in / out); }

}  // namespace cairn
