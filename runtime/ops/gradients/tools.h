// What gradient rules share. Internal to runtime/ops.
#pragma once
#include "runtime/ops/gradients.h"
#include "runtime/ops/rules.h"

namespace cairn::ops {

// Gradient of output 0 of an op whose other outputs are statistics that no gradient flows through;
// kUnsupported names the op and output when one does.
Id only_first(const GradientEmitter& e, std::string_view op, std::initializer_list<std::string_view> others);

// Whether operand i, which may be left out, is there and gets a gradient.
inline bool wants(const GradientEmitter& e, int i) { return e.in(i) != kNone && e.wants(i); }

// `id` in the dtype of `like`: itself, or through a cast.
Id as_dtype_of(GradientEmitter& e, Id id, Id like);

// Emits an op with one output that is wanted.
Id emit_one(GradientEmitter& e, OpCode op, std::vector<Id> in, Attrs attrs = {});

// Hands in the gradient of operand `i` that was broadcast to the shape of `grad`: the sums over the axes along which it
// was repeated, in the operand's dtype.
void give_reduced(GradientEmitter& e, int i, Id grad);

}  // namespace cairn::ops
