// Shape rules of lstm and gru: gates[B, T, k H] with w[k H, H], k = 4 and 3.
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

struct Sizes {
  int64_t batch, time, hidden;
};

void check_reverse(const Operands& o) {
  const int64_t reverse = o.attrs().integer("reverse");
  o.check_attr(reverse == 0 || reverse == 1, "reverse", reverse, "it must be 0 or 1");
}

// w with `gates` gates, beside operand x of the type of activations.
int64_t check_weight(const Operands& o, int w, int x, int64_t gates) {
  o.rank(w, 2);
  o.decoded_weight(w, x);
  o.check(o.shape(w)[0] == gates * o.shape(w)[1], w, "it must be [", gates, " H, H]");
  return o.shape(w)[1];
}

Sizes check_gates(const Operands& o, int i, int w, int64_t gates, int64_t weight_gates) {
  o.floating(i);
  o.rank(i, 3);
  const int64_t hidden = check_weight(o, w, i, weight_gates);
  o.check_pair(o.shape(i).last() == gates * hidden, i, w, "its last dimension must be ", gates, " * ",
               hidden);
  check_reverse(o);
  return {o.shape(i)[0], o.shape(i)[1], hidden};
}

void check_start(const Operands& o, int i, int x, const Sizes& s, bool is_wide) {
  if (!o.has(i)) return;
  is_wide ? o.parameter(i, x) : o.same_dtype(i, x);
  o.check(o.shape(i) == (Shape{s.batch, s.hidden}), i, "it must be [", s.batch, ", ", s.hidden, "]");
}

void check_states(const Operands& o, int i, int x, const Sizes& s, bool is_wide) {
  if (!o.has(i)) return;
  is_wide ? o.parameter(i, x) : o.same_dtype(i, x);
  o.check(o.shape(i) == (Shape{s.batch, s.time, s.hidden}), i, "it must be [", s.batch, ", ", s.time, ", ",
          s.hidden, "]");
}

TensorDesc states(DType dtype, const Sizes& s, int64_t each = 1) {
  return desc(dtype, {s.batch, s.time, each * s.hidden});
}

}  // namespace

void shape_lstm(const ShapeQuery& q) {
  const Operands o(q);
  const Sizes s = check_gates(o, 0, 1, 4, 4);
  check_start(o, 2, 0, s, false);
  check_start(o, 3, 0, s, true);
  o.put(states(o.dtype(0), s));
  o.put(states(wide(o.dtype(0)), s));
  o.put(states(o.dtype(0), s, 4));
}

void shape_lstm_grad(const ShapeQuery& q) {
  const Operands o(q);
  const Sizes s = check_gates(o, 2, 4, 4, 4);
  check_states(o, 0, 2, s, false);
  check_states(o, 1, 2, s, true);
  check_states(o, 3, 2, s, true);
  check_start(o, 5, 2, s, true);
  o.check(o.has(0) || o.has(1), 2, "neither dy nor dc is there");
  o.put(states(o.dtype(2), s, 4));
  o.put(desc(o.dtype(2), {s.batch, s.hidden}));
  o.put(desc(wide(o.dtype(2)), {s.batch, s.hidden}));
}

void shape_gru(const ShapeQuery& q) {
  const Operands o(q);
  const Sizes s = check_gates(o, 0, 1, 3, 3);
  if (o.has(2)) {
    o.parameter(2, 0);
    o.check(o.shape(2) == Shape{3 * s.hidden}, 2, "it must be [", 3 * s.hidden, "]");
  }
  check_start(o, 3, 0, s, false);
  o.put(states(o.dtype(0), s));
  o.put(states(o.dtype(0), s, 4));
}

void shape_gru_grad(const ShapeQuery& q) {
  const Operands o(q);
  const Sizes s = check_gates(o, 1, 3, 4, 3);
  check_states(o, 0, 1, s, false);
  check_states(o, 2, 1, s, false);
  check_start(o, 4, 1, s, false);
  o.put(states(o.dtype(1), s, 3));
  o.put(states(o.dtype(1), s, 3));
  o.put(desc(o.dtype(1), {s.batch, s.hidden}));
}

}  // namespace cairn::ops
