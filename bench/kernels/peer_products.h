// What our float32 products are measured against.
#pragma once
#include <functional>

#include "kernels/cpu/gemm/gemm_f32.h"

namespace cairn::bench {

// The same product by oneDNN; empty where the benchmark was built without it.
std::function<void(const float* a, const float* b, float* c, const float* bias)> peer_product(
    const kernels::cpu::ProductShape& shape);

}  // namespace cairn::bench
