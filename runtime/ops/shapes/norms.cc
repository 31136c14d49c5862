// Shape rules of norms: over the last axis of x[.., C], with statistics [..]; by channel, with [C]; by group of channels,
// with [N, G]. gamma[C], beta[C].
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

// Of norms by channel.
void check_batch(const Operands& o, int x) {
  check_input(o, x);
  o.rank_at_least(x, 2);
}

// groups divides the channels; returns [N, G].
Shape check_groups(const Operands& o, int x) {
  check_batch(o, x);
  const int64_t groups = o.attrs().integer("groups"), c = o.shape(x).last();
  o.check_attr(groups >= 1 && c % groups == 0, "groups", groups, "it must divide the ", c, " channels of x");
  return {o.shape(x)[0], groups};
}

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

void shape_batchnorm(const ShapeQuery& q) {
  const Operands o(q);
  check_batch(o, 0);
  o.check(o.shape(0).rows() >= 2, 0, "a channel has one element alone, which has no variance");
  check_scale(o, 1, 0);
  check_scale(o, 2, 0);
  o.put(o[0]);
  o.put(scale_gradient(o, 0));
  o.put(scale_gradient(o, 0));
}

void shape_batchnorm_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_batch(o, 1);
  o.same(0, 1);
  for (const int i : {2, 3, 4}) check_scale(o, i, 1);
  const int64_t fixed = o.attrs().integer("fixed");
  o.check_attr(fixed == 0 || fixed == 1, "fixed", fixed, "it must be 0 or 1");
  o.put(o[1]);
  o.put(scale_gradient(o, 1));
  o.put(scale_gradient(o, 1));
}

void shape_normalize(const ShapeQuery& q) {
  const Operands o(q);
  check_batch(o, 0);
  for (const int i : {1, 2, 3, 4}) check_scale(o, i, 0);
  o.put(o[0]);
}

void shape_groupnorm(const ShapeQuery& q) {
  const Operands o(q);
  const Shape statistics = check_groups(o, 0);
  check_scale(o, 1, 0);
  check_scale(o, 2, 0);
  o.put(o[0]);
  o.put(desc(wide(o.dtype(0)), statistics));
  o.put(desc(wide(o.dtype(0)), statistics));
}

void shape_groupnorm_grad(const ShapeQuery& q) {
  const Operands o(q);
  const Shape statistics = check_groups(o, 1);
  o.same(0, 1);
  check_scale(o, 2, 1);
  for (const int i : {3, 4}) {
    o.parameter(i, 1);
    o.check_pair(o.shape(i) == statistics, i, 1, "it must be of shape ", to_string(statistics));
  }
  o.put(o[1]);
  o.put(scale_gradient(o, 1));
  o.put(scale_gradient(o, 1));
}

void shape_l2_normalize(const ShapeQuery& q) {
  const Operands o(q);
  check_input(o, 0);
  o.put(o[0]);
  o.put(statistic(o, 0));
}

void shape_l2_normalize_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_input(o, 0);
  o.same(1, 0);
  check_statistic(o, 2, 0);
  o.put(o[0]);
}

}  // namespace cairn::ops
