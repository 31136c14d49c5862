// Shape rules of reshape, transpose, slice, concat, reductions and cast.
#include <algorithm>

#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

// Integer tensors may be moved around as well; packed weights may not.
void movable(const Operands& o, int i) {
  o.check(o.dtype(i) != DType::kOpaque && o[i].packed_bytes == 0, i, "packed bytes have no shape to work on");
}

std::string show(const std::vector<int64_t>& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += cat(i ? ", " : "", list[i]);
  return text + "]";
}

}  // namespace

void shape_reshape(const ShapeQuery& q) {
  const Operands o(q);
  movable(o, 0);
  std::vector<int64_t> dims = o.attrs().list("shape");
  const std::string shown = show(dims);
  int64_t known = 1;
  int64_t* free = nullptr;
  for (int64_t& d : dims) {
    if (d == -1) {
      o.check_attr(free == nullptr, "shape", shown, "only one dimension can be -1");
      free = &d;
    } else {
      o.check_attr(d > 0, "shape", shown, "dimensions must be positive, or -1 once");
      known = checked_mul(known, d);
    }
  }
  const int64_t elements = o.shape(0).elements();
  if (free != nullptr) {
    o.check(elements % known == 0, 0, "its ", elements, " elements do not fill shape ", shown);
    *free = elements / known;
  }
  o.check_attr(dims.size() <= static_cast<size_t>(kMaxRank), "shape", shown, "its rank is over ", kMaxRank);
  const Shape y{std::span<const int64_t>(dims)};
  o.check(y.elements() == elements, 0, "its ", elements, " elements do not fill shape ", shown);
  o.put(desc(o.dtype(0), y));
}

void shape_transpose(const ShapeQuery& q) {
  const Operands o(q);
  movable(o, 0);
  const std::vector<int64_t> perm = o.attrs().list("perm");
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool ok = static_cast<int>(perm.size()) == o.shape(0).rank;
  for (size_t i = 0; ok && i < sorted.size(); ++i) ok = sorted[i] == static_cast<int64_t>(i);
  o.check(ok, 0, "perm = ", show(perm), " is no permutation of its axes");
  Shape y = o.shape(0);
  for (int i = 0; i < y.rank; ++i) y[i] = o.shape(0)[static_cast<int>(perm[static_cast<size_t>(i)])];
  o.put(desc(o.dtype(0), y));
}

void shape_slice(const ShapeQuery& q) {
  const Operands o(q);
  movable(o, 0);
  const int axis = o.axis(o.attrs().integer("axis"), 0);
  const int64_t begin = o.attrs().integer("begin"), end = o.attrs().integer("end");
  o.check(0 <= begin && begin < end && end <= o.shape(0)[axis], 0, "[", begin, ", ", end,
          ") is no range within axis ", axis);
  Shape y = o.shape(0);
  y[axis] = end - begin;
  o.put(desc(o.dtype(0), y));
}

void shape_slice_grad(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  const int axis = o.axis(o.attrs().integer("axis"), 0);
  const int64_t begin = o.attrs().integer("begin"), size = o.attrs().integer("size");
  o.check(begin >= 0 && begin <= size - o.shape(0)[axis], 0, "begin = ", begin, ", size = ", size,
          " do not hold it on axis ", axis);
  Shape dx = o.shape(0);
  dx[axis] = size;
  o.put(desc(o.dtype(0), dx));
}

void shape_concat(const ShapeQuery& q) {
  const Operands o(q);
  movable(o, 0);
  const int axis = o.axis(o.attrs().integer("axis"), 0);
  Shape y = o.shape(0);
  for (int i = 1; i < o.count(); ++i) {
    if (!o.has(i)) continue;
    o.same_dtype(i, 0);
    Shape other = o.shape(i);
    o.check_pair(other.rank == y.rank, i, 0, "the ranks differ");
    const int64_t size = other[axis];
    other[axis] = o.shape(0)[axis];
    o.check_pair(other == o.shape(0), i, 0, "they may differ on axis ", axis, " only");
    y[axis] = checked_add(y[axis], size);
  }
  o.put(desc(o.dtype(0), y));
}

void shape_reduce(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  const int64_t keep = o.attrs().integer("keep");
  o.check_attr(keep == 0 || keep == 1, "keep", keep, "it must be 0 or 1");
  const std::vector<int> axes = o.axes(0);
  std::vector<int64_t> dims;
  for (int i = 0; i < o.shape(0).rank; ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i))
      dims.push_back(o.shape(0)[i]);
    else if (keep)
      dims.push_back(1);
  }
  o.put(desc(o.dtype(0), Shape{std::span<const int64_t>(dims)}));
}

void shape_expand(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  const std::vector<int64_t> dims = o.attrs().list("shape");
  const Shape dx{std::span<const int64_t>(dims)};
  std::vector<bool> repeated(static_cast<size_t>(dx.rank), o.attrs().list("axes").empty());
  for (int64_t a : o.attrs().list("axes")) {
    o.check_attr(a >= -dx.rank && a < dx.rank, "axes", a, "out of range of shape ", show(dims));
    repeated[static_cast<size_t>(a < 0 ? a + dx.rank : a)] = true;
  }
  int64_t elements = 1;
  for (int i = 0; i < dx.rank; ++i)
    if (!repeated[static_cast<size_t>(i)]) elements = checked_mul(elements, dx[i]);
  o.check(o.shape(0).elements() == elements, 0, "it must have ", elements, " elements to expand to ",
          show(dims));
  o.put(desc(o.dtype(0), dx));
}

void shape_reduce_leading(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  const int64_t rank = o.attrs().integer("rank");
  o.check(rank >= 0 && rank <= o.shape(0).rank, 0, "rank = ", rank, " is out of range");
  const auto dims = o.shape(0).span();
  o.put(desc(wide(o.dtype(0)), Shape(dims.subspan(dims.size() - static_cast<size_t>(rank)))));
}

void shape_reduce_axes(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  const std::vector<int> axes = o.axes(0);
  o.check(!axes.empty() && axes.back() - axes.front() + 1 == static_cast<int>(axes.size()), 0,
          "axes = ", show(o.attrs().list("axes")), " are no neighbours");
  int64_t elements = o.shape(0).elements();
  for (const int axis : axes) elements /= o.shape(0)[axis];
  const std::vector<int64_t> dims = o.attrs().list("shape");
  const Shape y{std::span<const int64_t>(dims)};
  o.check_attr(y.elements() == elements, "shape", show(dims), "there are ", elements, " sums");
  o.put(desc(wide(o.dtype(0)), y));
}

void shape_cast(const ShapeQuery& q) {
  const Operands o(q);
  movable(o, 0);
  const DType dtype = dtype_from_name(o.attrs().word("dtype"));
  o.check_attr(is_float(dtype), "dtype", dtype_name(dtype), "it must be a float type");
  o.put(desc(dtype, o.shape(0)));
}

}  // namespace cairn::ops
