// Sums of a convolution on their way to its output.
#pragma once
#include <cstdint>

#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {

// y[r * ld + j] = c[r * kPanel + j] (+ bias[j]) in its type, for rows of at most kPanel columns.
void store_sums(DType type, const float* c, int64_t rows, int64_t columns, const float* bias, void* y,
                int64_t ld);

}  // namespace cairn::kernels::cpu
