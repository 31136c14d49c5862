#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {

Id only_first(const GradientEmitter& e, std::string_view op, std::initializer_list<std::string_view> others) {
  int i = 0;
  for (std::string_view other : others)
    require(e.grad_out(++i) == kNone, Code::kUnsupported, op, ": no gradient flows through output '", other,
            "'");
  return e.grad_out(0);
}

Id as_dtype_of(GradientEmitter& e, Id id, Id like) {
  const DType dtype = e.desc(like).dtype;
  if (e.desc(id).dtype == dtype) return id;
  return emit_one(e, OpCode::k_cast, {id}, {{"dtype", std::string(dtype_name(dtype))}});
}

Id emit_one(GradientEmitter& e, OpCode op, std::vector<Id> in, Attrs attrs) {
  return e.emit(op, std::move(in), std::move(attrs), 1u)[0];
}

void give_reduced(GradientEmitter& e, int i, Id grad) {
  const Shape own = e.desc(e.in(i)).shape, whole = e.desc(grad).shape;
  const int missing = whole.rank - own.rank;
  const auto repeated = [&](int axis) {
    return whole[axis] > 1 && (axis < missing || own[axis - missing] == 1);
  };
  // If only leading axes are repeated, one op sums over all of them.
  bool suffix = true;
  for (int axis = missing; axis < whole.rank; ++axis) suffix = suffix && !repeated(axis);
  if (suffix) {
    if (missing > 0) grad = emit_one(e, OpCode::k_reduce_leading, {grad}, {{"rank", int64_t{own.rank}}});
    e.give(i, as_dtype_of(e, grad, e.in(i)));
    return;
  }
  // Otherwise one op for each group of neighbouring repeated axes, the last group first; the last op's sums have the operand's
  // own shape.
  Shape now = whole;
  for (int last = whole.rank - 1; last >= 0; --last) {
    if (!repeated(last)) continue;
    int first = last;
    while (first > 0 && (repeated(first - 1) || whole[first - 1] == 1)) --first;
    std::vector<int64_t> axes;
    for (int axis = first; axis <= last; ++axis) axes.push_back(axis), now[axis] = 1;
    bool more = false;
    for (int axis = 0; axis < first; ++axis) more = more || repeated(axis);
    const auto left = (more ? now : own).span();
    grad = emit_one(e, OpCode::k_reduce_axes, {grad},
                    {{"axes", axes}, {"shape", std::vector<int64_t>(left.begin(), left.end())}});
    last = first;
  }
  e.give(i, as_dtype_of(e, grad, e.in(i)));
}

}  // namespace cairn::ops
