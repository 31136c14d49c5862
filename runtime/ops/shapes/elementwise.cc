// Shape rules of elementwise ops.
#include <limits>

#include "runtime/base/glu.h"
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

void check_glu_attrs(const Operands& o) {
  const std::string word = o.attrs().word("activation", std::string(kGlus[0].word));
  std::string known;
  const GluRow* row = nullptr;
  for (const GluRow& glu : kGlus) {
    known += cat(known.empty() ? "" : ", ", glu.word);
    if (glu.word == word) row = &glu;
  }
  o.check_attr(row != nullptr, "activation", cat('\'', word, '\''), "it must be one of ", known);
  if (!o.attrs().has("limit")) return;
  const double limit = o.attrs().real("limit");
  o.check_attr(row->limited, "limit", limit, "the activation '", word, "' has no limit, swish_clamped has");
  o.check_attr(limit > 0, "limit", limit, "it must be positive");
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

void shape_softcap(const ShapeQuery& q) {
  const Operands o(q);
  check_same(o);
  const double cap = o.attrs().real("cap");
  o.check_attr(cap > 0, "cap", cap, "it must be positive");
  o.put(o[0]);
}

void shape_glu(const ShapeQuery& q) {
  const Operands o(q);
  check_same(o);
  check_glu_attrs(o);
  o.put(o[0]);
}

void shape_glu_grad(const ShapeQuery& q) {
  check_glu_attrs(Operands(q));
  shape_swiglu_grad(q);
}

void shape_clamp(const ShapeQuery& q) {
  const Operands o(q);
  check_same(o);
  const double inf = std::numeric_limits<double>::infinity();
  const double least = o.attrs().real("min", -inf), most = o.attrs().real("max", inf);
  o.check(least > -inf || most < inf, 0, "clamp needs min, max or both");
  o.check_attr(least <= most, "min", least, "it is above max, which is ", most);
  o.put(o[0]);
}

void shape_broadcast(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.beside(1, 0);
  o.put(desc(o.dtype(0), o.broadcast(1, o.shape(0), 0)));
}

void shape_where(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(1);
  o.beside(0, 1);
  o.beside(2, 1);
  o.put(desc(o.dtype(1), o.broadcast(0, o.broadcast(2, o.shape(1), 1), 1)));
}

// The output has operand 0's shape; the others are repeated to it.
void shape_onto_first(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  for (int i = 1; i < o.count(); ++i) {
    o.beside(i, 0);
    o.check_pair(o.broadcast(i, o.shape(0), 0) == o.shape(0), i, 0, "it is not repeated to that shape");
  }
  o.put(o[0]);
}

}  // namespace cairn::ops
