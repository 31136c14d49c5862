// Gradients of convolutions, pools, resize, pad and patches.
#include "runtime/base/spatial.h"

#include "runtime/ops/gradients/tools.h"

namespace cairn::ops {
namespace {

// The forward op's attributes without `without`, with a list more.
Attrs with_list(const GradientEmitter& e, std::string_view without, std::string name,
                std::vector<int64_t> list) {
  Attrs attrs;
  for (const auto& [key, value] : e.attrs().items())
    if (key != without) attrs.set(key, value);
  if (!name.empty()) attrs.set(std::move(name), std::move(list));
  return attrs;
}

// Of an op on x whose gradient op reads dy, perhaps one of the op's own outputs, and the spatial sizes of x.
void gives_input(GradientEmitter& e, OpCode op, int also = -1) {
  const Id dy = e.grad_out(0);
  if (dy == kNone || !e.wants(0)) return;
  std::vector<Id> in{dy};
  if (also >= 0) in.push_back(e.out(also));
  const std::vector<int64_t> input = spatial_sizes(e.desc(e.in(0)).shape);
  Attrs attrs;
  for (const auto& [key, value] : e.attrs().items())
    if (row(op).has_attr(key)) attrs.set(key, value);
  attrs.set("input", input);
  e.give(0, emit_one(e, op, std::move(in), std::move(attrs)));
}

}  // namespace

void grad_conv(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone) return;
  const bool bias = e.in(2) != kNone && e.wants(2);
  // Weights first: x is free before dx is taken.
  if (e.wants(1)) {
    const auto grads =
        e.emit(OpCode::k_conv_grad_weight, {e.in(0), dy},
               with_list(e, "", "kernel", spatial_sizes(e.desc(e.in(1)).shape)), bias ? 3u : 1u);
    e.give(1, grads[0]);
    if (bias) e.give(2, grads[1]);
  } else if (bias) {
    give_reduced(e, 2, dy);
  }
  if (e.wants(0))
    e.give(0, emit_one(e, OpCode::k_conv_transpose, {dy, e.in(1)},
                       with_list(e, "", "size", spatial_sizes(e.desc(e.in(0)).shape))));
}

// y is what conv's input gets: its own gradient is a convolution, and dw is conv's with the operands exchanged.
void grad_conv_transpose(GradientEmitter& e) {
  const Id dy = e.grad_out(0);
  if (dy == kNone) return;
  if (e.wants(1))
    e.give(1, e.emit(OpCode::k_conv_grad_weight, {dy, e.in(0)},
                     with_list(e, "size", "kernel", spatial_sizes(e.desc(e.in(1)).shape)), 1u)[0]);
  if (e.wants(0)) e.give(0, emit_one(e, OpCode::k_conv, {dy, e.in(1)}, with_list(e, "size", "", {})));
}

void grad_max_pool(GradientEmitter& e) {
  only_first(e, "max_pool", {"places"});
  gives_input(e, OpCode::k_max_pool_grad, 1);
}
void grad_average_pool(GradientEmitter& e) { gives_input(e, OpCode::k_average_pool_grad); }
void grad_resize(GradientEmitter& e) { gives_input(e, OpCode::k_resize_grad); }
void grad_patches(GradientEmitter& e) { gives_input(e, OpCode::k_patches_grad); }

void grad_pad(GradientEmitter& e) {
  Id dy = e.grad_out(0);
  if (dy == kNone || !e.wants(0)) return;
  const Shape x = e.desc(e.in(0)).shape;
  const std::vector<int64_t> before = e.attrs().list("before"), after = e.attrs().list("after");
  for (int axis = 0; axis < x.rank; ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (before[at] == 0 && after[at] == 0) continue;
    dy = emit_one(e, OpCode::k_slice, {dy},
                  {{"axis", int64_t{axis}}, {"begin", before[at]}, {"end", before[at] + x[axis]}});
  }
  e.give(0, dy);
}

}  // namespace cairn::ops
