// Totals of many blocks' sums in float32 that lose next to nothing: `low` collects the rounding errors of additions to
// `high` (Knuth's TwoSum).
#pragma once
#include <cmath>

#include "kernels/cuda/common/platform.h"

namespace cairn::kernels::cuda {

template <int kCount>
struct LongSum {
  float high[kCount] = {}, low[kCount] = {};

  // Adds a block's sums, which are 0 for the next one then.
  __device__ __forceinline__ void add(float (&sums)[kCount]) {
    for (int c = 0; c < kCount; ++c) {
      const float sum = high[c] + sums[c], back = sum - high[c];
      low[c] += (high[c] - (sum - back)) + (sums[c] - back);
      high[c] = sum;
      sums[c] = 0;
    }
  }
  // For an infinite high, low is NaN and must not be added.
  __device__ __forceinline__ float total(int c) const {
    return std::isfinite(high[c]) ? high[c] + low[c] : high[c];
  }
};

}  // namespace cairn::kernels::cuda
