// Gradients of attention.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {

void grad_attention(GradientEmitter& e) {
  const Id dy = only_first(e, "attention", {"lse"});
  if (dy == kNone) return;
  const bool packed = e.in(1) == kNone;
  const int inputs = packed ? 1 : 3;
  uint32_t wanted = 1u;  // dq is always made
  bool any = e.wants(0);
  for (int i = 1; i < inputs; ++i)
    if (e.wants(i)) {
      wanted |= 1u << i;
      any = true;
    }
  if (!any) return;
  const auto grads = e.emit(OpCode::k_attention_grad, {dy, e.in(0), e.in(1), e.in(2), e.out(0), e.out(1)},
                            e.attrs(), wanted);
  for (int i = 0; i < inputs; ++i)
    if (e.wants(i)) e.give(i, grads[static_cast<size_t>(i)]);
}

}  // namespace cairn::ops
