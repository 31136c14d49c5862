// Gradients of layernorm and rmsnorm.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {
void grad_layernorm(GradientEmitter& e) {
  const Id dy = only_first(e, "layernorm", {"mean", "rstd"});
  if (dy == kNone) return;
  const uint32_t wanted = 1u | (wants(e, 1) ? 2u : 0u) | (wants(e, 2) ? 4u : 0u);
  if (wanted == 1u && !e.wants(0)) return;
  const auto grads = e.emit(OpCode::k_layernorm_grad, {dy, e.in(0), e.in(1), e.out(1), e.out(2)}, {}, wanted);
  for (int i = 0; i < 3; ++i)
    if (wants(e, i)) e.give(i, grads[static_cast<size_t>(i)]);
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

}  // namespace cairn::ops
