// Convolutions of each channel with itself: rows of pixels in vectors of channels.
#pragma once
#include <cstdint>

#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {

inline constexpr int64_t kChannels = 32;  // of a block, which lies in float32 with its padding written out
inline int64_t round_channels(int64_t n) { return (n + kChannels - 1) / kChannels * kChannels; }

// Pixels of one picture as float32: to[(r * width + c) * kChannels + k] is channel k of row y + r and column x +
// c; zero outside.
struct DepthwiseRows {
  DType type;
  const void* picture;           // its first pixel's first channel of the block
  int64_t rows, columns, pixel;  // of the picture; elements from a pixel to the next
  int64_t y, x, height, width, channels;
};
void depthwise_rows(const DepthwiseRows& s, float* to);

// y of `pixels` in a row = bias + sum over taps of x[offset of the tap + i * step] w[tap], all of kChannels.
struct DepthwiseProduct {
  const float* x;
  const int64_t* offsets;
  int64_t taps, step;
  const float *w, *bias;  // bias: or nullptr
  int64_t pixels, channels;
  DType type;
  void* y;
  int64_t y_step;  // elements
};
void depthwise_row(const DepthwiseProduct& s);

// sums[tap] += sum over rows and pixels of dy[row, i] x[row * down + offset of the tap + i * step], all of kChannels.
struct DepthwiseSums {
  const float *x, *dy;
  const int64_t* offsets;
  int64_t taps, step, down, rows, pixels;
  float* sums;
};
void depthwise_sums(const DepthwiseSums& s);

}  // namespace cairn::kernels::cpu
