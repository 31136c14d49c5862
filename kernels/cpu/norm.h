// Rows of layernorm and rmsnorm (centered = false), forward and gradient. Sums in float32, lane by lane.
#pragma once
#include <cstdint>

#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {

struct NormRows {
  int64_t columns = 0;
  DType type = DType::kF32;  // of x and y
  bool centered = true;
  float eps = 1e-5f;
  const void* x = nullptr;
  const float *gamma = nullptr, *beta = nullptr;  // may be null
  void* y = nullptr;
  float *mean = nullptr, *rstd = nullptr;  // may be null
};

struct NormGradRows {
  int64_t columns = 0;
  DType type = DType::kF32;  // of dy, x, da and dx
  bool centered = true;
  const void *dy = nullptr, *x = nullptr;
  const float *gamma = nullptr, *mean = nullptr, *rstd = nullptr;
  const void* da = nullptr;  // may be null; added to dx
  void* dx = nullptr;        // may be null; may be da
};

}  // namespace cairn::kernels::cpu
