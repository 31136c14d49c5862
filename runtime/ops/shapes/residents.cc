// Ops on values that outlive a run.
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {

void shape_running_mean(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank_at_least(0, 1);
  o.parameter(1, 0);
  o.vector(1, o.shape(0).last(), 0);
  const double momentum = o.attrs().real("momentum", 0.1);
  o.check_attr(momentum >= 0 && momentum <= 1, "momentum", momentum, "it must be from 0 to 1");
  o.put(desc(DType::kF64, {o.shape(0).last() + 1}));
}

void shape_move_mean(const ShapeQuery& q) {
  const Operands o(q);
  o.check(o.dtype(0) == DType::kF64, 0, "it must be f64");
  o.rank(0, 1);
  o.put(desc(DType::kF32, {o.shape(0)[0] - 1}));
}

void shape_append(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.floating(1);
  o.rank_at_least(0, 1);
  o.rank_at_least(1, 1);
  Shape rows = o.shape(1);
  rows[0] = o.shape(0)[0];
  o.check_pair(o.shape(1).rank == o.shape(0).rank && rows == o.shape(0), 1, 0,
               "dimensions after the first differ");
  o.check_pair(o.shape(1)[0] <= o.shape(0)[0], 1, 0, "it has more rows than the cache");
  o.integers(2);
  o.check(o.shape(2).elements() == 1, 2, "it must be one number");
  o.put(o[0]);
}

}  // namespace cairn::ops
