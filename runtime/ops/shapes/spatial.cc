// Shape rules of convolutions, pools, resize, pad and patches: x[N, (H,) W, C], channels last.
#include "runtime/base/spatial.h"

#include <limits>

#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

constexpr int64_t kMostOfAxis =
    std::numeric_limits<int32_t>::max();  // of a number that an attribute has for an axis

void check_pictures(const Operands& o, int x) {
  o.floating(x);
  const int rank = o.shape(x).rank;
  o.check(rank == 3 || rank == 4, x, "it must be [N, L, C] or [N, H, W, C]");
}

Shape pictures(int64_t n, const std::vector<int64_t>& sizes, int64_t channels) {
  std::vector<int64_t> dims{n};
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  dims.push_back(channels);
  return Shape{std::span<const int64_t>(dims)};
}

std::vector<int64_t> outputs(const Windows& w, int axes) {
  return axes == 1 ? std::vector<int64_t>{w.w.out} : std::vector<int64_t>{w.h.out, w.w.out};
}

// One number, or one for each axis, of at least `least`. A list that is left out has none.
std::vector<int64_t> check_list(const Operands& o, std::string_view name, int axes, int64_t least,
                                bool pairs = false) {
  std::vector<int64_t> list = o.attrs().list(name);
  const size_t n = static_cast<size_t>(axes);
  o.check_attr(list.size() <= 1 || list.size() == n || (pairs && list.size() == 2 * n), name,
               cat("a list of ", list.size()), "it has one number, or one for each of ", axes,
               " spatial axes", pairs ? ", or two for each" : "");
  for (const int64_t each : list)
    o.check_attr(each >= least && each <= kMostOfAxis, name, each, "it must be in ", least, " .. ",
                 kMostOfAxis);
  return list;
}

// A list that has to be there.
std::vector<int64_t> check_given(const Operands& o, std::string_view name, int axes) {
  const std::vector<int64_t> list = check_list(o, name, axes, 1);
  o.check_attr(!list.empty(), name, "a list of 0", "it has one number, or one for each of ", axes,
               " spatial axes");
  return list;
}

// Of x, with a window that fits into it. pools: no window may lie in the padding alone.
Windows check_windows(const Operands& o, const Shape& x, const std::vector<int64_t>& window, bool pools) {
  const int axes = spatial_axes(x);
  check_list(o, "stride", axes, 1);
  check_list(o, "padding", axes, 0, true);
  if (!pools) check_list(o, "dilation", axes, 1);
  for (int axis = 0; axis < axes; ++axis) {  // so that no place in a window overflows
    checked_mul(x[axis + 1], kMostOfAxis);
    checked_mul(of_axis(window, axis), of_axis(o.attrs().list("dilation"), axis));
  }
  const Windows all = make_windows(x, window, o.attrs(), pools);
  for (const WindowAxis* a : {&all.h, &all.w}) {
    if (a->adaptive) continue;
    const int64_t room = checked_add(a->in, checked_add(a->before, a->after));
    o.check_attr(a->span() <= room, "kernel", a->span(), "it is wider than the ", room,
                 " elements of x and its padding");
    o.check_attr(!pools || (a->before < a->window && a->after < a->window), "padding",
                 std::max(a->before, a->after), "it must be less than the kernel of ", a->window);
  }
  return all;
}

int64_t check_groups(const Operands& o, int64_t channels, int64_t outputs) {
  const int64_t groups = o.attrs().integer("groups", 1);
  o.check_attr(groups >= 1 && channels % groups == 0 && outputs % groups == 0, "groups", groups,
               "it must divide the ", channels, " channels of x and the ", outputs, " outputs");
  return groups;
}

// w[O, (kh,) kw, C / groups] beside x with C channels.
void check_kernel(const Operands& o, int w, int x, const Shape& shape) {
  o.decoded_weight(w, x);
  o.check_pair(o.shape(w).rank == shape.rank, w, x, "it must be [O, ", shape.rank == 3 ? "k" : "kh, kw",
               ", C / groups]");
  const int64_t groups = check_groups(o, shape.last(), o.shape(w)[0]);
  o.check_pair(o.shape(w).last() * groups == shape.last(), w, x, "its last dimension must be ", shape.last(),
               " / ", groups, ", the channels of a group");
}

// Of a pool: `kernel` or the sizes of an adaptive one.
Windows check_pool(const Operands& o, const Shape& x) {
  const int axes = spatial_axes(x);
  const std::vector<int64_t> window = check_list(o, "kernel", axes, 1), size = check_list(o, "size", axes, 1);
  o.check_attr(window.empty() != size.empty(), "kernel", cat("a list of ", window.size()),
               "either kernel or size, the sizes of y, must be there");
  o.check_attr(size.empty() || (o.attrs().list("stride").empty() && o.attrs().list("padding").empty()),
               "size", cat("a list of ", size.size()), "it does not go together with stride or padding");
  const int64_t count = o.attrs().integer("count_padding", 1);
  o.check_attr(count == 0 || count == 1, "count_padding", count, "it must be 0 or 1");
  return check_windows(o, x, window, true);
}

// The shape of x, of whose gradient `dy` the spatial sizes are told by the attribute.
Shape check_input(const Operands& o, int dy, int64_t channels) {
  const std::vector<int64_t> sizes = check_list(o, "input", spatial_axes(o.shape(dy)), 1);
  o.check_attr(static_cast<int>(sizes.size()) == spatial_axes(o.shape(dy)), "input",
               cat("a list of ", sizes.size()), "it has one number for each spatial axis");
  return pictures(o.shape(dy)[0], sizes, channels);
}

void check_made_of(const Operands& o, int dy, const Windows& w) {
  o.check(spatial_sizes(o.shape(dy)) == outputs(w, spatial_axes(o.shape(dy))), dy, "windows over ",
          to_string(check_input(o, dy, w.channels)), " make another shape");
}

void check_mode(const Operands& o) {
  const std::string mode = o.attrs().word("mode", "nearest");
  o.check_attr(mode == "nearest" || mode == "bilinear", "mode", mode, "it must be nearest or bilinear");
  const int64_t align = o.attrs().integer("align_corners");
  o.check_attr(align == 0 || (align == 1 && mode == "bilinear"), "align_corners", align,
               "it must be 0, or 1 with mode bilinear");
}

}  // namespace

void shape_conv(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  check_kernel(o, 1, 0, o.shape(0));
  if (o.has(2)) {
    o.beside(2, 0);
    o.check_pair(o.shape(2).rank == 1 && o.shape(2)[0] == o.shape(1)[0], 2, 1,
                 "it must have one element for each output");
  }
  const Windows w = check_windows(o, o.shape(0), spatial_sizes(o.shape(1)), false);
  o.put(desc(o.dtype(0), pictures(w.n, outputs(w, spatial_axes(o.shape(0))), o.shape(1)[0])));
}

void shape_conv_transpose(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  const Shape& x = o.shape(0);
  const int axes = spatial_axes(x);
  const int64_t groups = o.attrs().integer("groups", 1);
  o.check_pair(o.shape(1).rank == x.rank && o.shape(1)[0] == x.last(), 1, 0, "it must be [", x.last(), ", ",
               axes == 1 ? "k" : "kh, kw", ", C / groups]");
  std::vector<int64_t> sizes = check_list(o, "size", axes, 1);
  const std::vector<int64_t> window = spatial_sizes(o.shape(1));
  check_list(o, "stride", axes, 1), check_list(o, "padding", axes, 0, true),
      check_list(o, "dilation", axes, 1);
  const auto smallest = [&](int axis) {
    const int64_t span =
        checked_mul(of_axis(o.attrs().list("dilation"), axis), window[static_cast<size_t>(axis)] - 1) + 1;
    const auto padding = o.attrs().list("padding");
    return checked_add(checked_mul(x[axis + 1] - 1, of_axis(o.attrs().list("stride"), axis)), span) -
           padding_of(padding, axes, axis, false) - padding_of(padding, axes, axis, true);
  };
  if (sizes.empty())
    for (int axis = 0; axis < axes; ++axis) sizes.push_back(smallest(axis));
  o.check_attr(static_cast<int>(sizes.size()) == axes, "size", cat("a list of ", sizes.size()),
               "it has one number for each spatial axis");
  for (const int64_t each : sizes) o.check_attr(each >= 1, "padding", each, "nothing is left of y");
  const Shape y = pictures(x[0], sizes, checked_mul(o.shape(1).last(), groups));
  check_kernel(o, 1, 0, y);
  const Windows w = check_windows(o, y, window, false);
  o.check(outputs(w, axes) == spatial_sizes(x), 0, "a convolution of ", to_string(y), " has another shape");
  o.put(desc(o.dtype(0), y));
}

void shape_conv_grad_weight(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  o.same_dtype(1, 0);
  const std::vector<int64_t> kernel = o.attrs().list("kernel");
  const int axes = spatial_axes(o.shape(0));
  o.check_attr(static_cast<int>(kernel.size()) == axes, "kernel", cat("a list of ", kernel.size()),
               "it has one number for each spatial axis");
  check_list(o, "kernel", axes, 1);
  const int64_t groups = check_groups(o, o.shape(0).last(), o.shape(1).last());
  const Windows w = check_windows(o, o.shape(0), kernel, false);
  o.check_pair(o.shape(1) == pictures(w.n, outputs(w, axes), o.shape(1).last()), 1, 0,
               "the convolution has another shape");
  o.put(desc(wide(o.dtype(0)), pictures(o.shape(1).last(), kernel, w.channels / groups)));
  o.put(desc(wide(o.dtype(0)), {o.shape(1).last()}));
}

void shape_max_pool(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  const Windows w = check_pool(o, o.shape(0));
  o.check(checked_mul(w.h.in, w.w.in) <= kMostOfAxis, 0, "it has more places than an i32 can number");
  const Shape y = pictures(w.n, outputs(w, spatial_axes(o.shape(0))), w.channels);
  o.put(desc(o.dtype(0), y));
  o.put(desc(DType::kI32, y));
}

void shape_max_pool_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  o.integers(1);
  o.same_shape(1, 0);
  o.put(desc(o.dtype(0), check_input(o, 0, o.shape(0).last())));
}

void shape_average_pool(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  const Windows w = check_pool(o, o.shape(0));
  o.put(desc(o.dtype(0), pictures(w.n, outputs(w, spatial_axes(o.shape(0))), w.channels)));
}

void shape_average_pool_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  const Shape x = check_input(o, 0, o.shape(0).last());
  check_made_of(o, 0, check_pool(o, x));
  o.put(desc(o.dtype(0), x));
}

void shape_resize(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  check_mode(o);
  const int axes = spatial_axes(o.shape(0));
  const std::vector<int64_t> size = check_given(o, "size", axes);
  std::vector<int64_t> sizes;
  for (int axis = 0; axis < axes; ++axis) sizes.push_back(of_axis(size, axis));
  o.put(desc(o.dtype(0), pictures(o.shape(0)[0], sizes, o.shape(0).last())));
}

void shape_resize_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  check_mode(o);
  o.put(desc(o.dtype(0), check_input(o, 0, o.shape(0).last())));
}

void shape_pad(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  Shape y = o.shape(0);
  const std::vector<int64_t> before = o.attrs().list("before"), after = o.attrs().list("after");
  o.check(static_cast<int>(before.size()) == y.rank && static_cast<int>(after.size()) == y.rank, 0,
          "before has ", before.size(), " numbers and after ", after.size(), "; both have one for each axis");
  for (int i = 0; i < y.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    o.check_attr(before[at] >= 0 && after[at] >= 0, "before", std::min(before[at], after[at]),
                 "neither it nor after may be negative");
    y[i] = checked_add(y[i], checked_add(before[at], after[at]));
  }
  o.put(desc(o.dtype(0), y));
}

void shape_patches(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  const int axes = spatial_axes(o.shape(0));
  const Windows w = check_windows(o, o.shape(0), check_given(o, "kernel", axes), false);
  o.put(desc(o.dtype(0), pictures(w.n, outputs(w, axes), checked_mul(w.taps(), w.channels))));
}

void shape_patches_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_pictures(o, 0);
  const int axes = spatial_axes(o.shape(0));
  const std::vector<int64_t> window = check_given(o, "kernel", axes);
  int64_t taps = 1;
  for (int axis = 0; axis < axes; ++axis) taps = checked_mul(taps, of_axis(window, axis));
  o.check(o.shape(0).last() % taps == 0, 0, "its last dimension is no multiple of the kernel's ", taps,
          " elements");
  const Shape x = check_input(o, 0, o.shape(0).last() / taps);
  check_made_of(o, 0, check_windows(o, x, window, false));
  o.put(desc(o.dtype(0), x));
}

}  // namespace cairn::ops
