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
  const int64_t rank = e.desc(e.in(i)).shape.rank;
  if (rank < e.desc(grad).shape.rank) grad = emit_one(e, OpCode::k_reduce_leading, {grad}, {{"rank", rank}});
  e.give(i, as_dtype_of(e, grad, e.in(i)));
}

}  // namespace cairn::ops
