// Gradients of effective, reshape, transpose, slice, concat, reductions and cast.
#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {
namespace {

std::vector<int64_t> dims(const Shape& shape) { return {shape.span().begin(), shape.span().end()}; }

int64_t not_negative(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

void reduction(GradientEmitter& e, bool mean) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !e.wants(0)) return;
  const Shape& x = e.desc(e.in(0)).shape;
  const std::vector<int64_t> axes = e.attrs().list("axes");
  double count = axes.empty() ? static_cast<double>(x.elements()) : 1.0;
  for (int64_t a : axes) count *= static_cast<double>(x[static_cast<int>(a)]);
  Attrs attrs{{"shape", dims(x)}, {"axes", axes}, {"factor", mean ? 1.0 / count : 1.0}};
  e.give(0, emit_one(e, OpCode::k_expand, {dy}, std::move(attrs)));
}

}  // namespace

void grad_effective(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy != kNone && e.wants(0)) e.give(0, emit_one(e, OpCode::k_effective_rows, {dy}, e.attrs()));
}

void grad_reshape(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !e.wants(0)) return;
  e.give(0, emit_one(e, OpCode::k_reshape, {dy}, {{"shape", dims(e.desc(e.in(0)).shape)}}));
}

void grad_transpose(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !e.wants(0)) return;
  const std::vector<int64_t> perm = e.attrs().list("perm");
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  e.give(0, emit_one(e, OpCode::k_transpose, {dy}, {{"perm", inverse}}));
}

void grad_slice(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !e.wants(0)) return;
  const Shape& x = e.desc(e.in(0)).shape;
  const int64_t axis = not_negative(e.attrs().integer("axis"), x.rank);
  e.give(
      0,
      emit_one(e, OpCode::k_slice_grad, {dy},
               {{"axis", axis}, {"begin", e.attrs().integer("begin")}, {"size", x[static_cast<int>(axis)]}}));
}

void grad_concat(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone) return;
  const int64_t axis = not_negative(e.attrs().integer("axis"), e.desc(e.in(0)).shape.rank);
  int64_t begin = 0;
  for (int i = 0; i < 8; ++i) {
    if (e.in(i) == kNone) continue;
    const int64_t end = begin + e.desc(e.in(i)).shape[static_cast<int>(axis)];
    if (e.wants(i))
      e.give(i, emit_one(e, OpCode::k_slice, {dy}, {{"axis", axis}, {"begin", begin}, {"end", end}}));
    begin = end;
  }
}

void grad_reduce_sum(GradientEmitter& e) { reduction(e, false); }
void grad_reduce_mean(GradientEmitter& e) { reduction(e, true); }

void grad_cast(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !e.wants(0)) return;
  // A parameter's gradient is not rounded to what the parameter is stored as.
  const bool wider = format(e.desc(e.in(0)).dtype).bits >= format(e.desc(dy).dtype).bits;
  e.give(0, wider ? as_dtype_of(e, dy, e.in(0)) : dy);
}

}  // namespace cairn::ops
