// Rows of layernorm and rmsnorm (centered = false), forward and gradient. Sums in float32, lane by lane.
#pragma once
#include <cstdint>

namespace cairn::kernels::cpu {

struct NormRows {
  int64_t columns = 0;
  bool half = false, centered = true;  // half: x and y are bfloat16
  float eps = 1e-5f;
  const void* x = nullptr;
  const float *gamma = nullptr, *beta = nullptr;  // may be null
  void* y = nullptr;
  float *mean = nullptr, *rstd = nullptr;  // may be null
};

struct NormGradRows {
  int64_t columns = 0;
  bool half = false, centered = true;
  const void *dy = nullptr, *x = nullptr;
  const float *gamma = nullptr, *mean = nullptr, *rstd = nullptr;
  const void* da = nullptr;  // may be null; added to dx
  void* dx = nullptr;        // may be null; may be da
};

}  // namespace cairn::kernels::cpu
