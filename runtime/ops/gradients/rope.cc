// Gradient of rope: the same turn the other way.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {

void grad_rope(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !e.wants(0)) return;
  Attrs attrs = e.attrs();
  const AttrValue inverse = int64_t{1} - attrs.integer("inverse");
  attrs.set("inverse", inverse);
  std::vector<Id> in{dy};
  if (e.in(1) != kNone) in.push_back(e.in(1));
  e.give(0, emit_one(e, OpCode::k_rope, std::move(in), std::move(attrs)));
}

}  // namespace cairn::ops
