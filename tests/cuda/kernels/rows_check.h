// Runs the CUDA rows of an op on operands of chosen sizes against the reference, as the conformance suite
// does on those of its graphs.
#pragma once
#include "kernels/cuda/rows.h"
#include "kernels/registry.h"
#include "tests/conformance/compare.h"

namespace cairn::conformance {

struct Argument {
  TensorDesc desc;
  Operand values;  // kind, lo, hi; kind '-': left out
};

inline Argument floats(DType dtype, std::initializer_list<int64_t> shape, double lo = -1, double hi = 1) {
  return {{dtype, Shape(shape), 0}, T({}, lo, hi)};
}
inline Argument integers(std::initializer_list<int64_t> shape, double lo, double hi) {
  return {{DType::kI32, Shape(shape), 0}, {'I', {}, lo, hi}};
}
inline Argument exact(DType dtype, std::initializer_list<int64_t> shape) {
  return {{dtype, Shape(shape), 0}, whole(T({}))};
}
inline const Argument kLeftOut{{DType::kF32, Shape{}, 0}, {}};
inline TensorDesc like(const Argument& a) { return a.desc; }
inline TensorDesc f32(std::initializer_list<int64_t> shape) { return {DType::kF32, Shape(shape), 0}; }
inline TensorDesc scalar() { return {DType::kF64, Shape{}, 0}; }

struct RowCase {
  const char* op;
  std::vector<Argument> in;
  std::vector<TensorDesc> out;
  Attrs attrs = {};
  uint32_t out_present = ~0u;
  // Changes the operands after they are filled.
  std::function<void(std::span<const Tensor>)> edit = {};
};

// Fails if no row takes the case, or one disagrees.
inline void check_rows(const RowCase& c) {
  std::vector<Buffer> buffers;
  std::vector<TensorDesc> descs;
  std::vector<Tensor> in;
  uint32_t present = 0;
  for (const Argument& a : c.in) {
    buffers.emplace_back(a.values.kind == '-' ? 0 : a.desc.bytes());
    descs.push_back(a.desc);
  }
  std::string what = c.op;
  for (size_t i = 0; i < c.in.size(); ++i) {
    const bool there = c.in[i].values.kind != '-';
    in.push_back({descs[i], there ? buffers[i].data() : nullptr});
    what += there ? cat(' ', to_string(descs[i])) : " -";
    if (!there) continue;
    present |= 1u << i;
    fill(in[i], 70 + i, c.in[i].values);
  }
  if (c.edit) c.edit(in);
  const uint32_t outputs = c.out_present & ((1u << c.out.size()) - 1);
  const kernels::Signature s{c.op, descs, c.out, present, outputs, &c.attrs, 1};
  int taken = 0;
  for (const kernels::KernelRow& row : kernels::cuda_registry().rows)
    if (row.op == c.op && compare(row, s, in, s, in, {}, false, what) >= 0) ++taken;
  EXPECT_GT(taken, 0) << what << ": no row takes it";
}

inline constexpr DType kTypes[] = {DType::kF32, DType::kBF16};

}  // namespace cairn::conformance
