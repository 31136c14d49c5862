// Shape rules of elementwise ops.
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

// The attributes of the ops that share shape_same; a missing one passes.
void check_elementwise_attrs(const Operands& o) {
  const std::string approximate = o.attrs().word("approximate", "tanh");
  o.check_attr(approximate == "tanh" || approximate == "erf", "approximate", cat('\'', approximate, '\''),
               "it must be tanh or erf");
  const double rate = o.attrs().real("rate");
  o.check_attr(rate >= 0 && rate < 1, "rate", rate, "it must be in [0, 1)");
  const int64_t rng = o.attrs().integer("rng");
  o.check_attr(rng >= 0 && rng <= UINT32_MAX, "rng", rng, "it must fit 32 bits");
}

void check_same(const Operands& o) {
  o.floating(0);
  for (int i = 1; i < o.count(); ++i) o.same(i, 0);
}

}  // namespace

void shape_same(const ShapeQuery& q) {
  const Operands o(q);
  check_same(o);
  check_elementwise_attrs(o);
  if (q.op == "softmax" || q.op == "softmax_grad") o.rank_at_least(0, 1);
  o.put(o[0]);
}

void shape_swiglu_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_same(o);
  o.put(o[1]);
  o.put(o[2]);
}

void shape_broadcast(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.floating(1);
  o.check_pair(o.dtype(1) == o.dtype(0) || (o.dtype(1) == DType::kF32 && wide(o.dtype(0)) == DType::kF32), 1,
               0, "the dtypes do not go together");
  const Shape &a = o.shape(0), &b = o.shape(1);
  bool suffix = b.rank <= a.rank;
  for (int i = 0; suffix && i < b.rank; ++i) suffix = b.dims[b.rank - 1 - i] == a.dims[a.rank - 1 - i];
  o.check_pair(suffix, 1, 0, "the shape is neither equal nor a suffix");
  o.put(o[0]);
}

}  // namespace cairn::ops
