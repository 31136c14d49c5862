// Gradients of embedding and linear.
#include "runtime/ops/functions.h"
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {
namespace {

// Gradient of the activation's argument, given dy; kNone for kNone.
Id through_activation(GradientEmitter& e, const Function& f, Id dy) {
  if (dy == kNone) return dy;
  Attrs attrs;
  if (!f.choice.empty()) attrs.set("approximate", std::string(f.choice));
  return emit_one(e, f.gradient, {dy, e.out(f.reads_argument() ? 1 : 0)}, std::move(attrs));
}

// Hands in the product for operand i, whose matrices may be repeated over leading dimensions.
void give_product(GradientEmitter& e, int i, Id a, Id b, bool transpose_a, bool transpose_b) {
  if (!e.wants(i)) return;
  Attrs attrs;
  if (transpose_a) attrs.set("transpose_a", int64_t{1});
  if (transpose_b) attrs.set("transpose_b", int64_t{1});
  give_reduced(e, i, emit_one(e, OpCode::k_matmul, {a, b}, std::move(attrs)));
}

}  // namespace

// With A and B as multiplied: dA = dy B^T, dB = A^T dy; of an operand that is stored the other way round, their
// transposes.
void grad_matmul(GradientEmitter& e) {
  const Id dy = e.grad_out(0), a = e.in(0), b = e.in(1);
  if (dy == kNone) return;
  const bool ta = e.attrs().integer("transpose_a") != 0, tb = e.attrs().integer("transpose_b") != 0;
  ta ? give_product(e, 0, b, dy, tb, true) : give_product(e, 0, dy, b, false, !tb);
  tb ? give_product(e, 1, dy, a, true, ta) : give_product(e, 1, a, dy, !ta, false);
}

void grad_embedding(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !e.wants(0)) return;
  const int64_t vocab = e.desc(e.in(0)).shape[0];
  e.give(0, emit_one(e, OpCode::k_embedding_grad, {e.in(1), dy}, {{"vocab", vocab}}));
}

void grad_linear(GradientEmitter& e) {
  const Function* activation = find_function(e.attrs().word("activation"));
  Id dpre = activation == nullptr ? e.grad_out(0) : through_activation(e, *activation, e.grad_out(0));
  // pre is a value that the graph may use elsewhere, too.
  if (activation != nullptr && activation->reads_argument() && e.grad_out(1) != kNone)
    dpre = dpre == kNone ? e.grad_out(1) : emit_one(e, OpCode::k_add, {dpre, e.grad_out(1)});
  if (dpre == kNone) return;
  const bool bias = e.in(2) != kNone && e.wants(2);
  // Weights first: x is free before dx is taken.
  if (e.wants(1)) {
    const auto grads = e.emit(OpCode::k_linear_grad_weight, {e.in(0), dpre}, {}, bias ? 3u : 1u);
    e.give(1, grads[0]);
    if (bias) e.give(2, grads[1]);
  } else if (bias) {
    give_reduced(e, 2, dpre);
  }
  if (e.wants(0)) e.give(0, emit_one(e, OpCode::k_linear_grad_input, {dpre, e.in(1)}));
}

}  // namespace cairn::ops
