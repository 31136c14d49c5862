// Shape rules of losses and of accuracy: (loss, weight) and (hits, count) are float64 scalars; targets and weights have one element per row of
// x.
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

void check_per_row(const Operands& o, int i, int x) {
  o.check_pair(o.shape(i) == without_last(o.shape(x)), i, x, "it must have one element per row, of shape ",
               to_string(without_last(o.shape(x))));
}

void check_weights(const Operands& o, int i, int x) {
  if (!o.has(i)) return;
  o.parameter(i, x);
  check_per_row(o, i, x);
}

void check_scalar(const Operands& o, int i) {
  if (o.has(i)) o.check(o.dtype(i) == DType::kF64 && o.shape(i).rank == 0, i, "it must be one f64");
}

// (loss, weight) or (hits, count).
void put_sums(const Operands& o) {
  o.put(desc(DType::kF64, {}));
  o.put(desc(DType::kF64, {}));
}

void put_hits(const Operands& o) {
  if (o.attrs().integer("accuracy") != 0) put_sums(o);
}

void check_rows(const Operands& o, int x, int targets, int weights) {
  o.floating(x);
  o.rank_at_least(x, 1);
  o.integers(targets);
  check_per_row(o, targets, x);
  check_weights(o, weights, x);
}

// Of a loss over `classes`; class_weights is operand i.
void check_classes(const Operands& o, int i, int x, int64_t classes) {
  const double smoothing = o.attrs().real("smoothing");
  o.check_attr(smoothing >= 0 && smoothing < 1, "smoothing", smoothing, "it must be in [0, 1)");
  if (!o.has(i)) return;
  o.parameter(i, x);
  o.check(o.shape(i).rank == 1 && o.shape(i)[0] == classes, i, "it must be of shape [", classes,
          "], a weight for each class");
  o.check_attr(smoothing == 0, "smoothing", smoothing, "it does not go together with class_weights");
}

void check_linear_cross_entropy(const Operands& o, int class_weights) {
  check_rows(o, 0, 2, 3);
  o.rank(1, 2);
  check_classes(o, class_weights, 0, o.shape(1)[0]);
  check_logits(o);
  o.weight(1, 0);
  o.check_pair(o.shape(1)[1] == o.shape(0).last(), 1, 0, "the last dimensions differ (", o.shape(1)[1], ", ",
               o.shape(0).last(), ")");
  const int64_t accuracy = o.attrs().integer("accuracy");
  o.check_attr(accuracy == 0 || accuracy == 1, "accuracy", accuracy, "it must be 0 or 1");
  const int64_t chunk = o.attrs().integer("chunk");
  o.check_attr(chunk >= 0, "chunk", chunk, "it must not be negative");
}

void check_pairs(const Operands& o) {
  o.floating(0);
  o.rank(0, 2);
  o.same(1, 0);
  o.check(o.shape(0)[0] >= 2, 0, "a pair alone has nothing to be compared with; at least 2 rows are needed");
  for (const int i : {2, 3}) {
    if (!o.has(i)) continue;
    o.parameter(i, 0);
    o.check(o.shape(i) == Shape{1}, i, "it must be of shape [1]");
  }
  const std::string kind = o.attrs().word("kind");
  o.check_attr(kind == "sigmoid" || kind == "triplet", "kind", kind, "it must be sigmoid or triplet");
  const double margin = o.attrs().real("margin", 0.2);
  o.check_attr(margin >= 0, "margin", margin, "it must not be negative");
}

void check_mse(const Operands& o) {
  o.floating(0);
  o.floating(1);
  o.rank_at_least(0, 1);
  o.same_shape(1, 0);
  o.check_pair(wide(o.dtype(0)) == wide(o.dtype(1)), 1, 0, "f64 goes with f64 only");
  check_weights(o, 2, 0);
}

}  // namespace

void shape_linear_cross_entropy(const ShapeQuery& q) {
  const Operands o(q);
  check_linear_cross_entropy(o, 4);
  put_sums(o);
  put_hits(o);
}

void shape_linear_cross_entropy_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_linear_cross_entropy(o, 6);
  if (o.has(4)) {
    o.weight(4, 0);
    o.same_shape(4, 1);
  }
  check_scalar(o, 5);
  put_sums(o);
  o.put(o[0]);
  o.put(desc(wide(o.dtype(0)), o.shape(1)));
  put_hits(o);
}

void shape_cross_entropy(const ShapeQuery& q) {
  const Operands o(q);
  check_rows(o, 0, 1, 2);
  check_classes(o, 3, 0, o.shape(0).last());
  put_sums(o);
}

void shape_accuracy(const ShapeQuery& q) {
  const Operands o(q);
  check_rows(o, 0, 1, 2);
  const int64_t top = o.attrs().integer("top", 1);
  o.check_attr(top >= 1, "top", top, "it must be at least 1");
  put_sums(o);
}

void shape_cross_entropy_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_rows(o, 0, 1, 2);
  check_scalar(o, 3);
  check_classes(o, 4, 0, o.shape(0).last());
  put_sums(o);
  o.put(o[0]);
}

void shape_mse(const ShapeQuery& q) {
  const Operands o(q);
  check_mse(o);
  put_sums(o);
}

void shape_mse_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_mse(o);
  check_scalar(o, 3);
  put_sums(o);
  o.put(o[0]);
  o.put(o[1]);
}

void shape_pair_loss(const ShapeQuery& q) {
  const Operands o(q);
  check_pairs(o);
  put_sums(o);
}

void shape_pair_loss_grad(const ShapeQuery& q) {
  const Operands o(q);
  check_pairs(o);
  check_scalar(o, 4);
  put_sums(o);
  o.put(o[0]);
  o.put(o[1]);
  o.put(desc(wide(o.dtype(0)), {1}));
  o.put(desc(wide(o.dtype(0)), {1}));
}

}  // namespace cairn::ops
