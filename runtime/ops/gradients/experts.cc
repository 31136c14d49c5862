// Gradients of the ops of mixtures of experts. Moving rows to their experts and adding up what comes back are each
// other's gradient.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {
namespace {

constexpr int kX = 0, kOrder = 1, kPlaces = 2, kWeights = 3;

// Of an op that moves rows by `order`, `places` and weights. `other` moves them back. x_by_row: x has a row
// for each row of the weights, else dy has.
void moved_rows(GradientEmitter& e, OpCode other, bool x_by_row) {
  const Id dy = e.grad_out(0), x = e.in(kX);
  if (dy == kNone) return;
  const bool weighted = e.in(kWeights) != kNone;
  // Weights first: x is free before dx is taken.
  if (weighted && e.wants(kWeights))
    e.give(kWeights,
           emit_one(e, OpCode::k_combine_rows_grad, {x_by_row ? x : dy, x_by_row ? dy : x, e.in(kPlaces)}));
  if (e.wants(kX))
    e.give(kX, emit_one(e, other, {dy, e.in(kOrder), e.in(kPlaces), weighted ? e.in(kWeights) : kNone}));
}

}  // namespace

void grad_route(GradientEmitter& e) {
  const Id dweights = e.grad_out(0), logits = e.in(0);
  if (dweights == kNone || !e.wants(0)) return;
  const int64_t normalise = e.attrs().integer("normalise", 1);
  const Id dlogits =
      emit_one(e, OpCode::k_route_grad, {dweights, e.out(0), e.out(1), normalise ? kNone : logits},
               {{"experts", e.desc(logits).shape.last()}, {"normalise", normalise}});
  e.give(0, as_dtype_of(e, dlogits, logits));
}

void grad_gather_rows(GradientEmitter& e) { moved_rows(e, OpCode::k_combine_rows, true); }
void grad_combine_rows(GradientEmitter& e) { moved_rows(e, OpCode::k_gather_rows, false); }

void grad_grouped_linear(GradientEmitter& e) {
  constexpr int kW = 1, kStarts = 2, kBias = 3;
  const Id dy = e.grad_out(0);
  if (dy == kNone) return;
  const bool bias = e.in(kBias) != kNone && e.wants(kBias);
  // Weights first: x is free before dx is taken.
  if (e.wants(kW) || bias) {
    const auto grads = e.emit(OpCode::k_grouped_linear_grad_weight, {e.in(kX), dy, e.in(kStarts)}, e.attrs(),
                              bias ? 3u : 1u);
    if (e.wants(kW)) e.give(kW, grads[0]);
    if (bias) e.give(kBias, grads[1]);
  }
  if (e.wants(kX))
    e.give(kX, emit_one(e, OpCode::k_grouped_linear_grad_input, {dy, e.in(kW), e.in(kStarts)}, e.attrs()));
}

}  // namespace cairn::ops
