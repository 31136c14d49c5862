// Shape rules of the ops of mixtures of experts.
#include <limits>

#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

TensorDesc numbers(const Shape& shape) { return desc(DType::kI32, shape); }

void check_switch(const Operands& o, std::string_view name, int64_t value) {
  o.check_attr(value == 0 || value == 1, name, value, "it must be 0 or 1");
}

// Choices, one or more for each row, as operand i: their number, which other choices are numbered by.
int64_t choices(const Operands& o, int i) {
  o.integers(i);
  o.rank_at_least(i, 1);
  const int64_t count = o.shape(i).elements();
  o.check(count < std::numeric_limits<int32_t>::max(), i, "it has more choices than an i32 can number");
  return count;
}

int64_t experts(const Operands& o) {
  const int64_t count = o.attrs().integer("experts");
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - 1;
  o.check_attr(count > 0 && count <= kMost, "experts", count, "it must be in 1 .. ", kMost);
  return count;
}

// Operands 1 and 2 of ops that move rows.
int64_t order_and_places(const Operands& o) {
  const int64_t count = choices(o, 2);
  o.integers(1);
  o.vector(1, count, 2);
  return count;
}

void row_weights(const Operands& o) {
  if (!o.has(3)) return;
  o.parameter(3, 0);
  o.same_shape(3, 2);
}

// x[M, ..] by experts.
void rows_by_expert(const Operands& o, int i) {
  o.floating(i);
  o.rank(i, 2);
}

struct Product {
  int64_t experts, n, k;  // y[.., N] = x[.., K] w^T
};

// w[E, N, K] as operand 1, and starts as operand 2.
Product product(const Operands& o) {
  const int64_t transposed = o.attrs().integer("transposed");
  check_switch(o, "transposed", transposed);
  o.rank(1, 3);
  o.check(o[1].packed_bytes == 0, 1, "it must not be packed");
  o.plain_weight(1, 0);
  const Shape& w = o.shape(1);
  o.integers(2);
  const int64_t first = o.attrs().integer("first");
  if (o.attrs().find("first") == nullptr) {
    o.vector(2, w[0] + 1, 1);
  } else {
    o.rank(2, 1);
    o.check_attr(first >= 0 && first + w[0] < o.shape(2)[0], "first", first, "there are ", o.shape(2)[0] - 1,
                 " experts, and w has ", w[0]);
  }
  return {o.shape(2)[0] - 1, w[transposed ? 2 : 1], w[transposed ? 1 : 2]};
}

// A result, of which operand i has the rows of other experts.
void put_after(const Operands& o, int i, const TensorDesc& result) {
  if (o.has(i)) {
    o.floating(i);
    o.check(o[i] == result, i, "it must be ", to_string(result));
  }
  o.put(result);
}

}  // namespace

void shape_route(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank_at_least(0, 1);
  const int64_t k = o.attrs().integer("k");
  o.check_attr(k > 0 && k <= o.shape(0).last(), "k", k, "it must be in 1 .. ", o.shape(0).last(),
               ", the number of experts");
  check_switch(o, "normalise", o.attrs().integer("normalise", 1));
  const Shape chosen = with_last(o.shape(0), k);
  o.put(desc(wide(o.dtype(0)), chosen));
  o.put(numbers(chosen));
}

void shape_route_grad(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank_at_least(0, 1);
  o.same(1, 0);
  o.integers(2);
  o.same_shape(2, 0);
  const Shape all = with_last(o.shape(0), experts(o));
  if (o.has(3)) {
    o.floating(3);
    o.check(o.shape(3) == all, 3, "its shape must be ", to_string(all));
  }
  const int64_t normalise = o.attrs().integer("normalise", 1);
  check_switch(o, "normalise", normalise);
  o.check_attr(normalise != 0 || o.has(3), "normalise", normalise, "the operand 'logits' is missing");
  o.put(desc(o.dtype(0), all));
}

void shape_group_rows(const ShapeQuery& q) {
  const Operands o(q);
  const int64_t count = choices(o, 0);
  o.put(numbers({count}));
  o.put(numbers(o.shape(0)));
  o.put(numbers({experts(o) + 1}));
}

void shape_count_choices(const ShapeQuery& q) {
  const Operands o(q);
  choices(o, 0);
  o.put(desc(DType::kF32, {experts(o)}));
}

void shape_gather_rows(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank_at_least(0, 1);
  const int64_t count = order_and_places(o);
  o.check_pair(without_last(o.shape(0)) == without_last(o.shape(2)), 2, 0, "the leading dimensions differ");
  row_weights(o);
  o.put(desc(o.dtype(0), {count, o.shape(0).last()}));
}

void shape_combine_rows(const ShapeQuery& q) {
  const Operands o(q);
  rows_by_expert(o, 0);
  const int64_t count = order_and_places(o);
  o.check_pair(o.shape(0)[0] == count, 0, 2, "there must be a row for each of the ", count, " choices");
  row_weights(o);
  o.put(desc(o.dtype(0), with_last(o.shape(2), o.shape(0)[1])));
}

void shape_combine_rows_grad(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank_at_least(0, 1);
  rows_by_expert(o, 1);
  o.same_dtype(1, 0);
  o.check_pair(o.shape(0).last() == o.shape(1)[1], 1, 0, "the last dimensions differ");
  const int64_t count = choices(o, 2);
  o.check_pair(o.shape(1)[0] == count, 1, 2, "there must be a row for each of the ", count, " choices");
  o.check_pair(without_last(o.shape(0)) == without_last(o.shape(2)), 2, 0, "the leading dimensions differ");
  o.put(desc(wide(o.dtype(0)), o.shape(2)));
}

void shape_grouped_linear(const ShapeQuery& q) {
  const Operands o(q);
  rows_by_expert(o, 0);
  const Product p = product(o);
  o.check_pair(p.k == o.shape(0)[1], 1, 0, "x has ", o.shape(0)[1], " columns, and w is for ", p.k);
  if (o.has(3)) {
    o.parameter(3, 0);
    o.check_pair(o.shape(3) == Shape{p.experts, p.n}, 3, 1, "it must be of shape [", p.experts, ", ", p.n,
                 "]");
  }
  put_after(o, 4, desc(o.dtype(0), {o.shape(0)[0], p.n}));
}

void shape_grouped_linear_grad_input(const ShapeQuery& q) {
  const Operands o(q);
  rows_by_expert(o, 0);
  const Product p = product(o);
  o.check_pair(p.n == o.shape(0)[1], 1, 0, "dy has ", o.shape(0)[1], " columns, and w gives ", p.n);
  put_after(o, 3, desc(o.dtype(0), {o.shape(0)[0], p.k}));
}

void shape_grouped_linear_grad_weight(const ShapeQuery& q) {
  const Operands o(q);
  rows_by_expert(o, 0);
  rows_by_expert(o, 1);
  o.same_dtype(1, 0);
  o.check_pair(o.shape(0)[0] == o.shape(1)[0], 1, 0, "the leading dimensions differ");
  o.integers(2);
  o.rank(2, 1);
  o.check(o.shape(2)[0] > 1, 2, "it must have an element more than there are experts");
  const int64_t transposed = o.attrs().integer("transposed");
  check_switch(o, "transposed", transposed);
  const int64_t all = o.shape(2)[0] - 1, n = o.shape(1)[1], k = o.shape(0)[1];
  const int64_t first = o.attrs().integer("first"), count = o.attrs().integer("experts", all);
  o.check_attr(count > 0 && first >= 0 && first + count <= all, "experts", count, "from number ", first,
               " on there are not so many of ", all);
  const DType t = wide(o.dtype(0));
  o.put(desc(t, transposed ? Shape{count, k, n} : Shape{count, n, k}));
  o.put(desc(t, {all, n}));
}

}  // namespace cairn::ops
