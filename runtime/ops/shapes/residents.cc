// Ops on values that outlive a run.
#include "runtime/base/checked.h"
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

void shape_effective(const ShapeQuery& q) {
  const Operands o(q);
  o.rank_at_least(0, 1);
  const int64_t steps = o.attrs().integer("micro_steps");
  o.check_attr(steps >= 1 && steps <= INT32_MAX, "micro_steps", steps, "it must be from 1 to 2147483647");
  TensorDesc all = o[0];
  all.shape[0] = checked_mul(all.shape[0], steps);
  o.put(all);
}

void shape_effective_rows(const ShapeQuery& q) {
  const Operands o(q);
  o.rank_at_least(0, 1);
  const int64_t steps = o.attrs().integer("micro_steps");
  o.check_attr(steps >= 1 && o.shape(0)[0] % steps == 0, "micro_steps", steps, "it must divide the rows");
  TensorDesc rows = o[0];
  rows.shape[0] /= steps;
  o.put(rows);
}

void shape_row_numbers(const ShapeQuery& q) {
  const Operands o(q);
  o.rank_at_least(0, 1);
  o.put(desc(DType::kI32, {o.shape(0)[0]}));
}

void shape_average(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  if (o.has(1))
    o.check(o.dtype(1) == DType::kSplit && o.shape(1) == o.shape(0), 1, "it must be p's lower half");
  const double decay = o.attrs().real("decay");
  o.check_attr(decay > 0 && decay < 1, "decay", decay, "it must be between 0 and 1");
  o.put(desc(wide(o.dtype(0)), o.shape(0)));
}

void shape_append(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.floating(1);
  o.rank_at_least(0, 1);
  o.rank_at_least(1, 1);
  const bool samples = o.shape(0).rank >= 3;  // each with rows of its own
  const int axis = samples ? 1 : 0;
  Shape rows = o.shape(1);
  o.check_pair(rows.rank == o.shape(0).rank, 1, 0, "it has another number of axes");
  rows[axis] = o.shape(0)[axis];
  o.check_pair(rows == o.shape(0), 1, 0, "dimensions differ, other than rows");
  const int64_t ring = o.attrs().integer("ring");
  o.check_attr(ring == 0 || ring == 1, "ring", ring, "it must be 0 or 1");
  o.check_pair(ring == 1 || o.shape(1)[axis] <= o.shape(0)[axis], 1, 0, "it has more rows than the cache");
  for (const int operand : {2, 3}) {
    if (!o.has(operand)) continue;
    o.integers(operand);
    o.check(o.shape(operand).elements() == (samples ? o.shape(0)[0] : 1), operand,
            samples ? "it must be a number for each sample" : "it must be one number");
  }
  o.put(o[0]);
}

}  // namespace cairn::ops
