// Gradients of elementwise ops.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {
namespace {

// dx = op(dy, saved...) for an op with one input.
void unary(GradientEmitter& e, OpCode op, std::vector<Id> saved, Attrs attrs = {}) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !e.wants(0)) return;
  saved.insert(saved.begin(), dy);
  e.give(0, emit_one(e, op, std::move(saved), std::move(attrs)));
}

Id saved(const GradientEmitter& e, uint32_t reads) { return reads == kReads_x ? e.in(0) : e.out(0); }

// dx = op(dy, saved..., attributes) of dy's shape, handed in for operand i.
void onto(GradientEmitter& e, int i, OpCode op, std::vector<Id> saved, Attrs attrs = {}) {
  if (!e.wants(i)) return;
  saved.insert(saved.begin(), e.grad_out(0));
  give_reduced(e, i, emit_one(e, op, std::move(saved), std::move(attrs)));
}

// dgate and dup of a gated unit.
void gated(GradientEmitter& e, OpCode op) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !(e.wants(0) || e.wants(1))) return;
  const auto grads = e.emit(op, {dy, e.in(0), e.in(1)}, e.attrs());
  for (int i = 0; i < 2; ++i)
    if (e.wants(i)) e.give(i, grads[static_cast<size_t>(i)]);
}

}  // namespace

#define UNARY(op, attributes, reads, ...)                                   \
  void grad_##op(GradientEmitter& e) {                                      \
    unary(e, OpCode::k_##op##_grad, {saved(e, kReads_##reads)}, e.attrs()); \
  }
#include "runtime/base/elementwise.def"

void grad_clamp(GradientEmitter& e) { unary(e, OpCode::k_clamp_grad, {e.in(0)}, e.attrs()); }
void grad_softcap(GradientEmitter& e) { unary(e, OpCode::k_softcap_grad, {e.in(0)}, e.attrs()); }
void grad_pow(GradientEmitter& e) { unary(e, OpCode::k_pow_grad, {e.in(0)}, e.attrs()); }
void grad_softmax(GradientEmitter& e) { unary(e, OpCode::k_softmax_grad, {e.out(0)}); }
void grad_scale(GradientEmitter& e) { unary(e, OpCode::k_scale, {}, e.attrs()); }
void grad_dropout(GradientEmitter& e) { unary(e, OpCode::k_dropout, {}, e.attrs()); }

void grad_swiglu(GradientEmitter& e) { gated(e, OpCode::k_swiglu_grad); }
void grad_glu(GradientEmitter& e) { gated(e, OpCode::k_glu_grad); }

void grad_add(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone) return;
  for (const int i : {0, 1})
    if (e.wants(i)) give_reduced(e, i, dy);
}

void grad_sub(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone) return;
  if (e.wants(0)) give_reduced(e, 0, dy);
  onto(e, 1, OpCode::k_scale, {}, {{"factor", -1.0}});
}

void grad_mul(GradientEmitter& e) {
  if (e.grad_out(0) == kNone) return;
  onto(e, 0, OpCode::k_mul, {e.in(1)});
  onto(e, 1, OpCode::k_mul, {e.in(0)});
}

void grad_div(GradientEmitter& e) {
  if (e.grad_out(0) == kNone) return;
  onto(e, 0, OpCode::k_div, {e.in(1)});
  onto(e, 1, OpCode::k_div_grad, {e.out(0), e.in(1)});
}

void grad_maximum(GradientEmitter& e) {
  if (e.grad_out(0) == kNone) return;
  onto(e, 0, OpCode::k_greater_grad, {e.in(0), e.in(1)});
  onto(e, 1, OpCode::k_greater_grad, {e.in(1), e.in(0)});
}

void grad_minimum(GradientEmitter& e) {
  if (e.grad_out(0) == kNone) return;
  onto(e, 0, OpCode::k_greater_grad, {e.in(1), e.in(0)});
  onto(e, 1, OpCode::k_greater_grad, {e.in(0), e.in(1)});
}

void grad_where(GradientEmitter& e) {
  if (e.grad_out(0) == kNone) return;
  onto(e, 1, OpCode::k_where_grad, {e.in(0)});
  onto(e, 2, OpCode::k_where_grad, {e.in(0)}, {{"other", int64_t{1}}});
}

}  // namespace cairn::ops
