// Gradients of attention.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {

void grad_attention(GradientEmitter& e) {
  const Id dy = only_first(e, "attention", {"lse"});
  if (dy == kNone) return;
  const bool packed = e.in(1) == kNone;
  constexpr int kSinks = 3, kOperands = 7;
  uint32_t wanted = 1u;  // dq is always made
  bool any = false;
  for (int i = 0; i <= kSinks; ++i) {
    if (!e.wants(i) || (packed && (i == 1 || i == 2))) continue;
    wanted |= 1u << i;
    any = true;
  }
  if (!any) return;
  std::vector<Id> in = {dy, e.in(0), e.in(1), e.in(2), e.out(0), e.out(1)};
  for (int i = kSinks; i < kOperands; ++i) in.push_back(e.in(i));
  const auto grads = e.emit(OpCode::k_attention_grad, std::move(in), e.attrs(), wanted);
  for (int i = 0; i <= kSinks; ++i)
    if (e.wants(i)) e.give(i, grads[static_cast<size_t>(i)]);
}

}  // namespace cairn::ops
