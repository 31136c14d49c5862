// Operands of 16 bits for float32 kernels.
#pragma once
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

// How many bfloat16 numbers make one of the type (ProductShape).
inline int float_parts(DType type) { return type == DType::kF32 ? 3 : type == DType::kF16 ? 2 : 1; }

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
