// Gradient of a host's own op: everything it saw goes to custom_grad, which calls the host back.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {

void grad_custom(GradientEmitter& e) {
  const int inputs = static_cast<int>(e.attrs().integer("inputs"));
  const int outputs = static_cast<int>(e.attrs().integer("outputs"));
  std::vector<Id> in(12, kNone);
  uint32_t wanted = 0;
  bool any = false;
  for (int i = 0; i < inputs; ++i) {
    in[static_cast<size_t>(i)] = e.in(i);
    if (e.wants(i)) wanted |= 1u << i;
  }
  for (int i = 0; i < outputs; ++i) {
    in[static_cast<size_t>(4 + i)] = e.out(i);
    in[static_cast<size_t>(8 + i)] = e.grad_out(i);
    any |= e.grad_out(i) != kNone;
  }
  if (!any || wanted == 0) return;
  const auto grads = e.emit(OpCode::k_custom_grad, std::move(in), e.attrs(), wanted);
  for (int i = 0; i < inputs; ++i)
    if (wanted >> i & 1u) e.give(i, grads[static_cast<size_t>(i)]);
}

}  // namespace cairn::ops
