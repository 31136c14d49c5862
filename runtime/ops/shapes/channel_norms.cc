// Shape rules of batchnorm, normalize, groupnorm and l2_normalize: x[.., C], channels last.
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

void check_eps(const Operands& o, double otherwise) {
  const double eps = o.attrs().real("eps", otherwise);
  o.check_attr(eps >= 0, "eps", eps, "it must not be negative");
}

void check_channels(const Operands& o, int i, int x) {
  if (!o.has(i)) return;
  o.parameter(i, x);
  o.vector(i, o.shape(x).last(), x);
}

TensorDesc channels(const Operands& o, int x) { return desc(wide(o.dtype(x)), {o.shape(x).last()}); }

void check_batch(const Operands& o, int x, double eps = 1e-5) {
  o.floating(x);
  o.rank_at_least(x, 2);
  check_eps(o, eps);
}

// groups divides the channels; returns [N, G].
Shape check_groups(const Operands& o, int x) {
  o.floating(x);
  o.rank_at_least(x, 2);
  const int64_t groups = o.attrs().integer("groups"), c = o.shape(x).last();
  o.check_attr(groups >= 1 && c % groups == 0, "groups", groups, "it must divide the ", c, " channels of x");
  return {o.shape(x)[0], groups};
}

}  // namespace

void shape_batchnorm(const ShapeQuery& q) {
  const Operands o(q);
  check_batch(o, 0);
  o.check(o.shape(0).rows() >= 2, 0, "a channel has one element alone, which has no variance");
  check_channels(o, 1, 0);
  check_channels(o, 2, 0);
  o.put(o[0]);
  o.put(channels(o, 0));
  o.put(channels(o, 0));
}

void shape_batchnorm_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_batch(o, 1);
  o.same(0, 1);
  for (const int i : {2, 3, 4}) check_channels(o, i, 1);
  const int64_t fixed = o.attrs().integer("fixed");
  o.check_attr(fixed == 0 || fixed == 1, "fixed", fixed, "it must be 0 or 1");
  o.put(o[1]);
  o.put(channels(o, 1));
  o.put(channels(o, 1));
}

void shape_normalize(const ShapeQuery& q) {
  const Operands o(q);
  check_batch(o, 0);
  for (const int i : {1, 2, 3, 4}) check_channels(o, i, 0);
  o.put(o[0]);
}

void shape_groupnorm(const ShapeQuery& q) {
  const Operands o(q);
  check_eps(o, 1e-5);
  const Shape statistics = check_groups(o, 0);
  check_channels(o, 1, 0);
  check_channels(o, 2, 0);
  o.put(o[0]);
  o.put(desc(wide(o.dtype(0)), statistics));
  o.put(desc(wide(o.dtype(0)), statistics));
}

void shape_groupnorm_grad(const ShapeQuery& q) {
  const Operands o(q);
  const Shape statistics = check_groups(o, 1);
  o.same(0, 1);
  check_channels(o, 2, 1);
  for (const int i : {3, 4}) {
    o.parameter(i, 1);
    o.check_pair(o.shape(i) == statistics, i, 1, "it must be of shape ", to_string(statistics));
  }
  o.put(o[1]);
  o.put(channels(o, 1));
  o.put(channels(o, 1));
}

void shape_l2_normalize(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank_at_least(0, 1);
  check_eps(o, 1e-12);
  o.put(o[0]);
  o.put(desc(wide(o.dtype(0)), without_last(o.shape(0))));
}

void shape_l2_normalize_grad(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank_at_least(0, 1);
  o.same(1, 0);
  o.parameter(2, 0);
  o.check_pair(o.shape(2) == without_last(o.shape(0)), 2, 0, "it must have one element per row");
  check_eps(o, 1e-12);
  o.put(o[0]);
}

}  // namespace cairn::ops
