// Operands of 16 bits for float32 kernels.
#pragma once
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/simd/blocks.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

// How many bfloat16 numbers make one of the type (ProductShape).
inline int float_parts(DType type) { return type == DType::kBF16 ? 1 : type == DType::kF16 ? 2 : 3; }

// Blocks that are packed for products in float32: all values decoded, in the weight's own layout.
inline bool is_decoded(const TensorDesc& d, DType compute) {
  const bool panels = compute == DType::kBF16 && has_bf16_products();
  return !panels && d.packed_bytes > 0 && d.packed_bytes == 4 * d.shape.elements();
}
// A weight that float32 products take, and what they see: what is in blocks they decode themselves.
inline bool float_weight(const TensorDesc& d, DType compute) {
  return fast_float(d) || in_blocks(d) || is_decoded(d, compute);
}
inline int weight_parts(const TensorDesc& d) { return d.packed_bytes > 0 ? 3 : float_parts(d.dtype); }

// Rows of a weight as float32 numbers; of blocks those that an op of `compute` reads.
class WeightRows {
 public:
  WeightRows(const TensorDesc& d, DType compute)
      : type_(d.dtype),
        blocks_(in_blocks(d)),
        as_(compute == DType::kBF16 ? DType::kBF16 : DType::kF32, DType::kF32) {}
  bool plain() const { return type_ == DType::kF32; }
  // `rows` of `count` values each, one after the other; the first begins at value `first`, the others `pitch` apart.
  void read(const void* data, int64_t first, int64_t pitch, int64_t rows, int64_t count, float* to) const {
    if (blocks_) return decode_rows({type_, data, first, pitch, rows, count}, as_, to, count);
    const char* const from = static_cast<const char*>(data) + first * dtype_bytes(type_);
    if (pitch == count) return convert(type_, DType::kF32, false, from, to, rows * count);
    for (int64_t r = 0; r < rows; ++r)
      convert(type_, DType::kF32, false, from + r * pitch * dtype_bytes(type_), to + r * count, count);
  }

 private:
  DType type_;
  bool blocks_;
  DecodedAs as_;
};

// An operand as float32: itself, or a copy in the workspace.
struct Widened {
  DType type = DType::kF32;                // of the operand
  int64_t count = 0, at = 0, element = 0;  // element: bytes of one

  Widened(const TensorDesc& d, Workspace* space)
      : type(d.dtype), count(d.shape.elements()), element(dtype_bytes(d.dtype)) {
    if (type != DType::kF32) at = space->add(count * 4);
  }
  int parts() const { return float_parts(type); }
  const float* read(const void* data, void* workspace) const {
    if (type == DType::kF32) return static_cast<const float*>(data);
    float* to = Workspace::at<float>(workspace, at);
    parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) {
      convert(type, DType::kF32, false, static_cast<const char*>(data) + b * element, to + b, e - b);
    });
    return to;
  }
  float* target(void* data, void* workspace) const {
    return type != DType::kF32 ? Workspace::at<float>(workspace, at) : static_cast<float*>(data);
  }
  void finish(void* data, void* workspace) const { finish(data, workspace, 0, count); }
  // Elements [begin, end) alone.
  void finish(void* data, void* workspace, int64_t begin, int64_t end) const {
    if (type == DType::kF32) return;
    const float* from = Workspace::at<float>(workspace, at) + begin;
    char* to = static_cast<char*>(data) + begin * element;
    parallel_for(end - begin, kGrain, [&](int64_t b, int64_t e, int) {
      convert(DType::kF32, type, false, from + b, to + b * element, e - b);
    });
  }
};

}  // namespace cairn::kernels::cpu
