// Gradients of attention.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {

void grad_attention(GradientEmitter& e) {
  const Id dy = only_first(e, "attention", {"lse"});
  if (dy == kNone) return;
  const bool packed = e.in(1) == kNone;
  constexpr int kSinks = 3, kOperands = 8;
  constexpr int kTrained[] = {0, 1, 2, kSinks,
                              7};  // operands, in the order of their gradients; the last: distances
  uint32_t wanted = 1u;            // dq is always made
  bool any = false;
  for (size_t i = 0; i < std::size(kTrained); ++i) {
    if (!e.wants(kTrained[i]) || (packed && (i == 1 || i == 2))) continue;
    wanted |= 1u << i;
    any = true;
  }
  if (!any) return;
  std::vector<Id> in = {dy, e.in(0), e.in(1), e.in(2), e.out(0), e.out(1)};
  for (int i = kSinks; i < kOperands; ++i) in.push_back(e.in(i));
  const auto grads = e.emit(OpCode::k_attention_grad, std::move(in), e.attrs(), wanted);
  for (size_t i = 0; i < std::size(kTrained); ++i)
    if (e.wants(kTrained[i])) e.give(kTrained[i], grads[i]);
}

void grad_relative_bias(GradientEmitter& e) {
  const Id ddistances = e.grad_out(0);
  if (ddistances == kNone || !e.wants(0)) return;
  Attrs attrs = e.attrs();
  attrs.set("buckets", AttrValue(e.desc(e.in(0)).shape[0]));
  e.give(0, emit_one(e, OpCode::k_relative_bias_grad, {ddistances}, std::move(attrs)));
}

}  // namespace cairn::ops
