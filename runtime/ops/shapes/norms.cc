// Shape rules of layernorm and rmsnorm: x[.., C], gamma[C], beta[C], mean[..], rstd[..].
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

void check_input(const Operands& o, int x) {
  o.floating(x);
  o.rank_at_least(x, 1);
  const double eps = o.attrs().real("eps", 1e-5);
  o.check_attr(eps >= 0, "eps", eps, "it must not be negative");
}

void check_scale(const Operands& o, int i, int x) {
  if (!o.has(i)) return;
  o.parameter(i, x);
  o.vector(i, o.shape(x).last(), x);
}

// It is added to operand i, gamma.
void check_offset(const Operands& o, int i) {
  const double offset = o.attrs().real("offset");
  o.check_attr(offset == 0 || o.has(i), "offset", offset, "there is no gamma that it is added to");
}

void check_statistic(const Operands& o, int i, int x) {
  o.parameter(i, x);
  o.check_pair(o.shape(i) == without_last(o.shape(x)), i, x, "it must have one element per row");
}

TensorDesc statistic(const Operands& o, int x) { return desc(wide(o.dtype(x)), without_last(o.shape(x))); }

TensorDesc scale_gradient(const Operands& o, int x) { return desc(wide(o.dtype(x)), {o.shape(x).last()}); }

}  // namespace

void shape_layernorm(const ShapeQuery& q) {
  const Operands o(q);
  check_input(o, 0);
  check_scale(o, 1, 0);
  check_scale(o, 2, 0);
  o.put(o[0]);
  o.put(statistic(o, 0));
  o.put(statistic(o, 0));
}

void shape_layernorm_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_input(o, 1);
  o.same(0, 1);
  check_scale(o, 2, 1);
  check_statistic(o, 3, 1);
  check_statistic(o, 4, 1);
  if (o.has(5)) o.same(5, 1);
  o.put(o[1]);
  o.put(scale_gradient(o, 1));
  o.put(scale_gradient(o, 1));
}

void shape_rmsnorm(const ShapeQuery& q) {
  const Operands o(q);
  check_input(o, 0);
  check_scale(o, 1, 0);
  check_offset(o, 1);
  o.put(o[0]);
  o.put(statistic(o, 0));
}

void shape_rmsnorm_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_input(o, 1);
  o.same(0, 1);
  check_scale(o, 2, 1);
  check_offset(o, 2);
  check_statistic(o, 3, 1);
  if (o.has(4)) o.same(4, 1);
  o.put(o[1]);
  o.put(scale_gradient(o, 1));
}

}  // namespace cairn::ops
