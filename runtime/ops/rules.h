// Declares every shape rule and gradient rule that ops.def names; a nullptr column declares nothing.
#pragma once
#include "runtime/ops/gradients.h"

namespace cairn::ops {

// CAIRN_RULE_<rule> is a plain name for real rules, so CAIRN_PICK takes CAIRN_DECLARE; CAIRN_RULE_nullptr
// brings its own second argument, CAIRN_SKIP.
#define CAIRN_SECOND(first, second, ...) second
#define CAIRN_PICK(...) CAIRN_SECOND(__VA_ARGS__, CAIRN_DECLARE, ~)
#define CAIRN_RULE_nullptr ~, CAIRN_SKIP
#define CAIRN_DECLARE(rule, Argument) void rule(Argument);
#define CAIRN_SKIP(rule, Argument)
#define OP(id, inputs, outputs, attrs, shape, gradient, ...) \
  CAIRN_PICK(CAIRN_RULE_##shape)                             \
  (shape, const ShapeQuery&)CAIRN_PICK(CAIRN_RULE_##gradient)(gradient, GradientEmitter&)
#include "runtime/ops/ops.def"
#undef OP
#undef CAIRN_SKIP
#undef CAIRN_DECLARE
#undef CAIRN_RULE_nullptr
#undef CAIRN_PICK
#undef CAIRN_SECOND

}  // namespace cairn::ops
