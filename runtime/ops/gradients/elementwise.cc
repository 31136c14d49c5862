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

}  // namespace

#define UNARY(op, attributes, reads, ...)                                   \
  void grad_##op(GradientEmitter& e) {                                      \
    unary(e, OpCode::k_##op##_grad, {saved(e, kReads_##reads)}, e.attrs()); \
  }
#include "runtime/base/elementwise.def"

void grad_softmax(GradientEmitter& e) { unary(e, OpCode::k_softmax_grad, {e.out(0)}); }
void grad_scale(GradientEmitter& e) { unary(e, OpCode::k_scale, {}, e.attrs()); }
void grad_dropout(GradientEmitter& e) { unary(e, OpCode::k_dropout, {}, e.attrs()); }

void grad_swiglu(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !(e.wants(0) || e.wants(1))) return;
  const auto grads = e.emit(OpCode::k_swiglu_grad, {dy, e.in(0), e.in(1)});
  for (int i = 0; i < 2; ++i)
    if (e.wants(i)) e.give(i, grads[static_cast<size_t>(i)]);
}

void grad_add(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone) return;
  if (e.wants(0)) e.give(0, dy);
  if (e.wants(1)) give_reduced(e, 1, dy);
}

void grad_mul(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone) return;
  if (e.wants(0)) e.give(0, emit_one(e, OpCode::k_mul, {dy, e.in(1)}));
  if (e.wants(1)) give_reduced(e, 1, emit_one(e, OpCode::k_mul, {dy, e.in(0)}));
}

}  // namespace cairn::ops
