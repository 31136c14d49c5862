// Shape rules of embedding and linear.
#include "runtime/ops/functions.h"
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

// What the attribute names, nullptr for none.
const Function* activation(const Operands& o) {
  const std::string word = o.attrs().word("activation");
  const Function* found = find_function(word);
  o.check_attr(word.empty() || found != nullptr, "activation", cat('\'', word, '\''), "it must be one of ",
               activation_words());
  return found;
}

}  // namespace

void shape_embedding(const ShapeQuery& q) {
  const Operands o(q);
  const DType dtype = o.looked_up(0);
  o.integers(1);
  o.check(o.shape(1).rank < kMaxRank, 1, "its rank is too large");
  Shape y = o.shape(1);
  y.dims[y.rank++] = o.shape(0)[1];
  o.put(desc(dtype, y));
}

void shape_embedding_grad(const ShapeQuery& q) {
  const Operands o(q);
  o.integers(0);
  o.floating(1);
  o.rank_at_least(1, 1);
  o.check_pair(without_last(o.shape(1)) == o.shape(0), 1, 0, "the leading dimensions differ");
  const int64_t vocab = o.attrs().integer("vocab");
  o.check_attr(vocab > 0, "vocab", vocab, "it must be positive");
  o.put(desc(wide(o.dtype(1)), {vocab, o.shape(1).last()}));
}

void shape_linear(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank_at_least(0, 1);
  o.weight(1, 0);
  o.check_pair(o.shape(1)[1] == o.shape(0).last(), 1, 0, "the last dimensions differ (", o.shape(1)[1], ", ",
               o.shape(0).last(), ")");
  const int64_t n = o.shape(1)[0];
  if (o.has(2)) {
    o.parameter(2, 0);
    o.vector(2, n, 1);
  }
  const Function* act = activation(o);
  const TensorDesc y = desc(o.dtype(0), with_last(o.shape(0), n));
  o.put(y);
  if (act != nullptr && act->reads_argument()) o.put(y);
}

void shape_matmul(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.same_dtype(1, 0);
  o.check(o[1].packed_bytes == 0, 1, "it must not be packed");
  bool transposed[2];
  for (int i = 0; i < 2; ++i) {
    o.rank_at_least(i, 2);
    const std::string name = i == 0 ? "transpose_a" : "transpose_b";
    const int64_t given = o.attrs().integer(name);
    o.check_attr(given == 0 || given == 1, name, given, "it must be 0 or 1");
    transposed[i] = given == 1;
  }
  const int64_t m = o.shape(0)[transposed[0] ? -1 : -2], k = o.shape(0)[transposed[0] ? -2 : -1];
  const int64_t n = o.shape(1)[transposed[1] ? -2 : -1], other = o.shape(1)[transposed[1] ? -1 : -2];
  o.check_pair(k == other, 1, 0, "a's matrices have ", k, " columns and b's ", other, " rows",
               transposed[0] || transposed[1] ? ", where they are transposed as asked" : "");
  const Shape lead = o.broadcast_leading(1, 0, 2);
  Shape y = lead;
  y.rank += 2;
  y[-2] = m;
  y[-1] = n;
  o.put(desc(o.dtype(0), y));
}

void shape_linear_grad_input(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank_at_least(0, 1);
  o.weight(1, 0);
  o.check_pair(o.shape(1)[0] == o.shape(0).last(), 1, 0, "dy's last dimension is not w's first (",
               o.shape(0).last(), ", ", o.shape(1)[0], ")");
  const Function* act = activation(o);
  o.check_attr((act != nullptr) == o.has(2), "activation", cat('\'', o.attrs().word("activation"), '\''),
               "pre and activation belong together");
  const TensorDesc dx = desc(o.dtype(0), with_last(o.shape(0), o.shape(1)[1]));
  if (o.has(2)) o.check(o[2] == dx, 2, "dx is ", to_string(dx));
  o.put(dx);
}

void shape_linear_grad_weight(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank_at_least(0, 1);
  o.rank_at_least(1, 1);
  o.same_dtype(1, 0);
  o.check_pair(without_last(o.shape(0)) == without_last(o.shape(1)), 1, 0, "the leading dimensions differ");
  const DType t = wide(o.dtype(0));
  o.put(desc(t, {o.shape(1).last(), o.shape(0).last()}));
  o.put(desc(t, {o.shape(1).last()}));
}

}  // namespace cairn::ops
