// Shape rules of the ops on a part of a vocabulary: rows [first, first + n) of a weight of `vocab` rows.
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

void check_part(const Operands& o, int64_t rows, int64_t vocab) {
  const int64_t first = o.attrs().integer("first");
  o.check_attr(first >= 0 && rows > 0 && first <= vocab - rows, "first", first, "rows [", first, ", ", first,
               " + ", rows, ") are not all among the ", vocab, " of the vocabulary");
}

Shape per_row(const Operands& o, int64_t columns) { return {o.shape(0).rows(), columns}; }

// x[.., C] and w[n, C].
void check_product(const Operands& o) {
  o.floating(0);
  o.rank_at_least(0, 1);
  o.weight(1, 0);
  o.check_pair(o.shape(1)[1] == o.shape(0).last(), 1, 0, "the last dimensions differ (", o.shape(1)[1], ", ",
               o.shape(0).last(), ")");
  check_part(o, o.shape(1)[0], o.attrs().integer("vocab"));
  const int64_t chunk = o.attrs().integer("chunk");
  o.check_attr(chunk >= 0, "chunk", chunk, "it must not be negative");
  check_logits(o);
}

void check_is(const Operands& o, int i, const TensorDesc& wanted) {
  if (o.has(i)) o.check(o[i] == wanted, i, "it must be ", to_string(wanted));
}

void check_targets(const Operands& o, int i) {
  o.integers(i);
  o.check_pair(o.shape(i).elements() == o.shape(0).rows(), i, 0, "it must have one element per row");
}

constexpr int64_t kSeen = 4, kOpen = 64;

TensorDesc seen_of(const Operands& o) { return desc(wide(o.dtype(0)), per_row(o, kSeen)); }
TensorDesc sum_of(const Operands& o) { return desc(DType::kF64, {o.shape(0).rows()}); }

}  // namespace

void check_logits(const Operands& o) {
  const double scale = o.attrs().real("scale", 1);
  o.check_attr(scale > 0, "scale", scale, "it must be positive");
  if (!o.attrs().has("softcap")) return;
  const double softcap = o.attrs().real("softcap");
  o.check_attr(softcap > 0, "softcap", softcap, "it must be positive");
}

void shape_embedding_part(const ShapeQuery& q) {
  const Operands o(q);
  const DType dtype = o.looked_up(0);
  o.integers(1);
  o.check(o.shape(1).rank < kMaxRank, 1, "its rank is too large");
  check_part(o, o.shape(0)[0], o.attrs().integer("vocab"));
  Shape z = o.shape(1);
  z.dims[z.rank++] = o.shape(0)[1];
  check_is(o, 2, desc(dtype, z));
  o.put(desc(dtype, z));
}

void shape_embedding_part_grad(const ShapeQuery& q) {
  const Operands o(q);
  o.integers(0);
  o.floating(1);
  o.rank_at_least(1, 1);
  o.check_pair(without_last(o.shape(1)) == o.shape(0), 1, 0, "the leading dimensions differ");
  const int64_t rows = o.attrs().integer("rows"), first = o.attrs().integer("first");
  o.check_attr(rows > 0, "rows", rows, "it must be positive");
  o.check_attr(first >= 0, "first", first, "it must not be negative");
  o.put(desc(wide(o.dtype(1)), {rows, o.shape(1).last()}));
}

void shape_linear_cross_entropy_max(const ShapeQuery& q) {
  const Operands o(q);
  check_product(o);
  check_targets(o, 2);
  check_is(o, 3, seen_of(o));
  o.put(seen_of(o));
}

void shape_linear_cross_entropy_sum(const ShapeQuery& q) {
  const Operands o(q);
  const TensorDesc open = desc(DType::kF32, per_row(o, kOpen));
  check_product(o);
  check_is(o, 2, seen_of(o));
  check_is(o, 3, sum_of(o));
  check_is(o, 4, open);
  o.put(sum_of(o));
  o.put(open);
}

void shape_linear_cross_entropy_loss(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.check(o.shape(0).rank == 2 && o.shape(0)[1] == kSeen, 0, "it must have ", kSeen, " columns");
  check_is(o, 1, sum_of(o));
  check_targets(o, 2);
  if (o.has(3)) o.parameter(3, 0);
  o.put(desc(DType::kF64, {}));
  o.put(desc(DType::kF64, {}));
  if (o.attrs().integer("accuracy") == 0) return;
  o.put(desc(DType::kF64, {}));
  o.put(desc(DType::kF64, {}));
}

void shape_linear_cross_entropy_part(const ShapeQuery& q) {
  const Operands o(q);
  check_product(o);
  check_targets(o, 2);
  if (o.has(3)) o.parameter(3, 0);
  check_is(o, 4, seen_of(o));
  check_is(o, 5, sum_of(o));
  check_is(o, 6, desc(DType::kF64, {}));
  const TensorDesc dx = desc(wide(o.dtype(0)), o.shape(0));
  check_is(o, 7, dx);
  o.put(dx);
  o.put(desc(wide(o.dtype(0)), o.shape(1)));
}

}  // namespace cairn::ops
