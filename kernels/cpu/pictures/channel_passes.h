// Passes over rows of channels, x[rows, C], of which norms by channel are made. What belongs to a channel stands in rows of C
// float32 numbers.
#pragma once
#include <cstdint>

#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {

struct ChannelRows {
  DType type = DType::kF32;  // of x, y, dy and dx
  int64_t channels = 0;
};

// Of some rows: three rows of C. The mean is the sum of the first two, of which one is the first of the rows; the third is the
// sum of squares of what differs from the mean. Neighbouring rows are added up among themselves before they join the others
// (Chan, Golub and LeVeque, 1979), so that a mean far from 0 costs no digits of small deviations.
inline constexpr int64_t kStatistics = 3;
void channel_statistics(const ChannelRows&, const void* x, int64_t rows, float* statistics);

// Sums of dy and of dy (x - mean): two rows of C.
inline constexpr int64_t kGradientSums = 2;
void channel_sums(const ChannelRows&, const void* dy, const void* x, int64_t rows, const float* mean,
                  float* sums);

// Factors: five rows of C.
struct ChannelFactors {
  enum : int64_t { kMean, kFactor, kShift, kSlope, kOuter, kCount };
};
// y = (x - mean) factor + shift; y may be x.
void channel_scale(const ChannelRows&, const void* x, int64_t rows, const float* factors, void* y);
// dx = (dy factor + shift + (x - mean) slope) outer; dx may be dy. The first sum is one of rounded numbers: it is 0 where the shift is
// all that dy gave.
void channel_gradient(const ChannelRows&, const void* dy, const void* x, int64_t rows, const float* factors,
                      void* dx);

}  // namespace cairn::kernels::cpu
