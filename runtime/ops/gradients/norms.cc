// Gradients of norms, over the last axis, by channel, by group and of length.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {
namespace {

// Of x, of gamma, which is operand `gamma`, and of beta after it, by an op that reads dy, x, gamma and statistics.
void norm(GradientEmitter& e, OpCode op, Id dy, int gamma, Id mean, Id second, Attrs attrs) {
  const uint32_t wanted = 1u | (wants(e, gamma) ? 2u : 0u) | (wants(e, gamma + 1) ? 4u : 0u);
  if (dy == kNone || (wanted == 1u && !e.wants(0))) return;
  const auto grads = e.emit(op, {dy, e.in(0), e.in(gamma), mean, second}, std::move(attrs), wanted);
  if (e.wants(0)) e.give(0, grads[0]);
  for (int i : {0, 1})
    if (wants(e, gamma + i)) e.give(gamma + i, grads[static_cast<size_t>(1 + i)]);
}

}  // namespace

void grad_layernorm(GradientEmitter& e) {
  const Id dy = only_first(e, "layernorm", {"mean", "rstd"});
  norm(e, OpCode::k_layernorm_grad, dy, 1, e.out(1), e.out(2), {});
}

void grad_rmsnorm(GradientEmitter& e) {
  const Id dy = only_first(e, "rmsnorm", {"rstd"});
  if (dy == kNone) return;
  const uint32_t wanted = 1u | (wants(e, 1) ? 2u : 0u);
  if (wanted == 1u && !e.wants(0)) return;
  Attrs attrs;
  if (const AttrValue* offset = e.attrs().find("offset")) attrs.set("offset", *offset);
  const auto grads =
      e.emit(OpCode::k_rmsnorm_grad, {dy, e.in(0), e.in(1), e.out(1)}, std::move(attrs), wanted);
  for (int i = 0; i < 2; ++i)
    if (wants(e, i)) e.give(i, grads[static_cast<size_t>(i)]);
}

void grad_batchnorm(GradientEmitter& e) {
  const Id dy = only_first(e, "batchnorm", {"mean", "variance"});
  norm(e, OpCode::k_batchnorm_grad, dy, 1, e.out(1), e.out(2), e.attrs());
}

// The statistics are constants.
void grad_normalize(GradientEmitter& e) {
  for (const int i : {1, 2})
    require(!e.wants(i), Code::kUnsupported,
            "normalize: mean and variance get no gradient; batchnorm's flow into x");
  Attrs attrs = e.attrs();
  attrs.set("fixed", int64_t{1});
  norm(e, OpCode::k_batchnorm_grad, e.grad_out(0), 3, e.in(1), e.in(2), std::move(attrs));
}

void grad_groupnorm(GradientEmitter& e) {
  const Id dy = only_first(e, "groupnorm", {"mean", "rstd"});
  norm(e, OpCode::k_groupnorm_grad, dy, 1, e.out(1), e.out(2), {{"groups", e.attrs().integer("groups")}});
}

void grad_l2_normalize(GradientEmitter& e) {
  const Id dy = only_first(e, "l2_normalize", {"norm"});
  if (dy == kNone || !e.wants(0)) return;
  e.give(0, emit_one(e, OpCode::k_l2_normalize_grad, {dy, e.out(0), e.out(1)}, e.attrs()));
}

}  // namespace cairn::ops
