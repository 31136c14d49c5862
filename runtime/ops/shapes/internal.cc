// Shape rules of the ops made by autodiff, lowering and the step controller.
#include "runtime/ops/optimizers.h"
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {

void shape_fill(const ShapeQuery& q) {
  const Operands o(q);
  const std::vector<int64_t> dims = o.attrs().list("shape");
  const DType dtype = dtype_from_name(o.attrs().word("dtype", "f32"));
  o.check_attr(is_float(dtype), "dtype", dtype_name(dtype), "it must be a float type");
  o.put(desc(dtype, Shape{std::span<const int64_t>(dims)}));
}

void shape_accumulate(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.put(desc(wide(o.dtype(0)), o.shape(0)));
}

// Lowering sets the size of the packed form, which only the backend knows.
void shape_pack_weight(const ShapeQuery& q) {
  const Operands o(q);
  if (!o.in_blocks(0)) o.floating(0);
  o.rank(0, 2);
  const std::string use = o.attrs().word("use");
  o.check_attr(use == "forward" || use == "input_grad", "use", cat('\'', use, '\''),
               "it must be forward or input_grad");
  const int64_t m = o.attrs().integer("m");
  o.check_attr(m > 0, "m", m, "it must be positive");
  dtype_from_name(o.attrs().word("dtype"));
  o.put(o[0]);
}

void shape_dequantise(const ShapeQuery& q) {
  const Operands o(q);
  o.check(format(o.dtype(0)).read == Read::kDequantised && o[0].packed_bytes == 0, 0,
          "it must be of a format that is dequantised");
  const DType dtype = dtype_from_name(o.attrs().word("dtype"));
  o.check_attr(dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16, "dtype",
               dtype_name(dtype), "it must be f32, bf16 or f16");
  o.put(desc(dtype, o.shape(0)));
}

void shape_sum_squares(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.put(desc(DType::kF64, {}));
}

void shape_squares_of_chunks(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  const int64_t chunk = o.attrs().integer("chunk");
  o.check_attr(chunk > 0 && chunk % 8 == 0, "chunk", chunk, "it must be a positive multiple of 8");
  const int64_t count = o.shape(0).elements();
  o.put(desc(DType::kF64, {count / chunk + (count % chunk > 0 ? 1 : 0)}));
}

void shape_sum_of_chunks(const ShapeQuery& q) {
  const Operands o(q);
  o.check(o.dtype(0) == DType::kF64, 0, "it must be f64");
  o.rank(0, 1);
  o.put(desc(DType::kF64, {}));
}

// Names all states that the optimizer may have; a call has those that its hyper-parameters ask for.
void shape_update(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.check(o.dtype(0) == wide(o.dtype(0)), 0, "it must be f32 or f64");
  o.check(o.dtype(1) == DType::kF64 && o.shape(1) == Shape{update_op::kHyperSlots}, 1, "it must be f64[8]");
  o.put(o[0]);
  // Those that there are come first, so that a state that this tensor has not moves none.
  for (const OptimizerState& state : optimizer(o.attrs().word("optimizer")).states)
    if (const auto tensor = state.form(o[0])) o.put(*tensor);
  if (o.attrs().has("split")) o.put(desc(DType::kSplit, o.shape(0)));
  if (!o.has(2)) return;
  o.check(o.dtype(2) == DType::kF64 && o.shape(2).rank == 0, 2, "it must be one f64");
  q.out->resize(row(OpCode::k_update).outputs.size());
  q.out->back() = desc(DType::kF64, {});
}

void shape_grad_scale(const ShapeQuery& q) {
  const Operands o(q);
  for (int i = 0; i < 2; ++i)
    if (o.has(i)) o.check(o.dtype(i) == DType::kF64 && o.shape(i).rank == 0, i, "it must be one f64");
  o.put(desc(DType::kF64, {}));
}

void shape_custom_grad(const ShapeQuery& q) {
  const Operands o(q);
  const int64_t inputs = o.attrs().integer("inputs"), outputs = o.attrs().integer("outputs");
  o.check_attr(inputs >= 1 && inputs <= 4, "inputs", inputs, "it must be in 1..4");
  o.check_attr(outputs >= 1 && outputs <= 4, "outputs", outputs, "it must be in 1..4");
  for (int i = 0; i < inputs; ++i) {
    o.check_attr(o.has(i), "inputs", inputs, "operand x", i, " is missing");
    o.put(o[i]);
  }
}

}  // namespace cairn::ops
