// Gradients of lstm and gru. Their ops give the gradients of the gates; the weight's is that of a linear layer whose
// input at each step is y of the step before.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {
namespace {

// y of the step before, [B, T, H]: h0, or zeros, at the first.
Id before(GradientEmitter& e, Id h0) {
  const Id y = e.out(0);
  const Shape shape = e.desc(y).shape;
  const int64_t time = shape[1];
  const bool reverse = e.attrs().integer("reverse") != 0;
  const Attrs steps = {
      {"axis", int64_t{1}}, {"begin", int64_t{reverse ? 1 : 0}}, {"end", time - (reverse ? 0 : 1)}};
  if (h0 == kNone) {
    if (time == 1) return emit_one(e, OpCode::k_scale, {y}, {{"factor", 0.0}});
    const Id part = emit_one(e, OpCode::k_slice, {y}, steps);
    return emit_one(e, OpCode::k_slice_grad, {part},
                    {{"axis", int64_t{1}}, {"begin", int64_t{reverse ? 0 : 1}}, {"size", time}});
  }
  const Id start =
      emit_one(e, OpCode::k_reshape, {h0}, {{"shape", std::vector<int64_t>{shape[0], 1, shape[2]}}});
  if (time == 1) return start;
  const Id part = emit_one(e, OpCode::k_slice, {y}, steps);
  std::vector<Id> both{start, part};
  if (reverse) std::swap(both[0], both[1]);
  return emit_one(e, OpCode::k_concat, std::move(both), {{"axis", int64_t{1}}});
}

// dgates: of the products that w makes. bias: the operand that is added to these, or -1.
void give_weight(GradientEmitter& e, Id h0, Id dgates, int bias) {
  const bool wants_bias = bias >= 0 && wants(e, bias);
  if (e.wants(1)) {
    const auto grads =
        e.emit(OpCode::k_linear_grad_weight, {before(e, h0), dgates}, {}, wants_bias ? 3u : 1u);
    e.give(1, grads[0]);
    if (wants_bias) e.give(bias, grads[1]);
  } else if (wants_bias) {
    give_reduced(e, bias, dgates);
  }
}

Attrs direction(const GradientEmitter& e) {
  Attrs attrs;
  if (const AttrValue* reverse = e.attrs().find("reverse")) attrs.set("reverse", *reverse);
  return attrs;
}

}  // namespace

void grad_lstm(GradientEmitter& e) {
  require(e.grad_out(2) == kNone, Code::kUnsupported, "lstm: no gradient flows through output 'saved'");
  const Id dy = e.grad_out(0), dc = e.grad_out(1);
  if (dy == kNone && dc == kNone) return;
  const auto grads = e.emit(OpCode::k_lstm_grad, {dy, dc, e.out(2), e.out(1), e.in(1), e.in(3)}, direction(e),
                            1u | (wants(e, 2) ? 2u : 0u) | (wants(e, 3) ? 4u : 0u));
  give_weight(e, e.in(2), grads[0], -1);
  if (e.wants(0)) e.give(0, grads[0]);
  if (wants(e, 2)) e.give(2, grads[1]);
  if (wants(e, 3)) e.give(3, grads[2]);
}

void grad_gru(GradientEmitter& e) {
  const Id dy = only_first(e, "gru", {"saved"});
  if (dy == kNone) return;
  const auto grads = e.emit(OpCode::k_gru_grad, {dy, e.out(1), e.out(0), e.in(1), e.in(3)}, direction(e),
                            3u | (wants(e, 3) ? 4u : 0u));
  give_weight(e, e.in(3), grads[1], 2);
  if (e.wants(0)) e.give(0, grads[0]);
  if (wants(e, 3)) e.give(3, grads[2]);
}

}  // namespace cairn::ops
