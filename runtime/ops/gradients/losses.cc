// Gradients of losses: one fused op that computes loss, weight and the gradients. Under a loss scale there is a
// grad_out(0), and the gradients are multiplied by it. The emitter replaces the forward op's outputs by the outputs of the
// same names.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {
namespace {

// The operand `weights` and, of a loss over classes, the one after it get no gradient, and none comes through the
// outputs after the loss.
void check(const GradientEmitter& e, std::string_view op, int weights,
           std::initializer_list<std::string_view> others = {"weight"}) {
  only_first(e, op, others);
  for (const int i : {weights, weights + 1})
    require(e.in(i) == kNone || !e.wants(i), Code::kUnsupported, op, ": weights get no gradient");
}

}  // namespace

void grad_linear_cross_entropy(GradientEmitter& e) {
  check(e, "linear_cross_entropy", 3, {"weight", "hits", "count"});
  if (!e.wants(0) && !e.wants(1)) return;
  const auto grads = e.emit(OpCode::k_linear_cross_entropy_grad,
                            {e.in(0), e.in(1), e.in(2), e.in(3), kNone, e.grad_out(0), e.in(4)}, e.attrs(),
                            7u | (e.wants(1) ? 8u : 0u));
  if (e.wants(1)) e.give(1, grads[3]);
  if (e.wants(0)) e.give(0, grads[2]);
}

void grad_cross_entropy(GradientEmitter& e) {
  check(e, "cross_entropy", 2);
  if (!e.wants(0)) return;
  const auto grads =
      e.emit(OpCode::k_cross_entropy_grad, {e.in(0), e.in(1), e.in(2), e.grad_out(0), e.in(3)}, e.attrs());
  e.give(0, grads[2]);
}

void grad_mse(GradientEmitter& e) {
  check(e, "mse", 2);
  if (!e.wants(0) && !e.wants(1)) return;
  const auto grads = e.emit(OpCode::k_mse_grad, {e.in(0), e.in(1), e.in(2), e.grad_out(0)}, {},
                            3u | (e.wants(0) ? 4u : 0u) | (e.wants(1) ? 8u : 0u));
  if (e.wants(0)) e.give(0, grads[2]);
  if (e.wants(1)) e.give(1, grads[3]);
}

void grad_pair_loss(GradientEmitter& e) {
  only_first(e, "pair_loss", {"weight"});
  uint32_t wanted = 3u;
  for (const int i : {0, 1, 2, 3})
    if (e.in(i) != kNone && e.wants(i)) wanted |= 4u << i;
  if (wanted == 3u) return;
  const auto grads = e.emit(OpCode::k_pair_loss_grad, {e.in(0), e.in(1), e.in(2), e.in(3), e.grad_out(0)},
                            e.attrs(), wanted);
  for (const int i : {0, 1, 2, 3})
    if (wanted >> (2 + i) & 1u) e.give(i, grads[static_cast<size_t>(2 + i)]);
}

}  // namespace cairn::ops
