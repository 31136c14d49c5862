// Passes over the channels of pixels.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/base/spatial.h"

namespace cairn::kernels::cpu {

// What an element of an axis is a sum of: elements of another one, `at` elements of memory from the first, times weights.
struct PixelTerm {
  int64_t at = 0;
  float weight = 1;
};
using AxisTerms = std::vector<std::vector<PixelTerm>>;

// A row of pixels: y[j, c] = the sum over the terms p of `row` and q of columns[j] of p.weight q.weight x[p.at + q.at + c].
void sum_pixels(DType type, const void* x, const std::vector<PixelTerm>& row, const AxisTerms& columns,
                int64_t channels, void* y);

// Row i of a sample's outputs: the largest elements of x, and their pixels.
void max_pixels(DType type, const Windows& all, const void* x, int64_t i, void* y, int32_t* places);

// `channels` float32 numbers of each pixel, one pixel after the other, as they are stored: `stride` elements from one to the next.
void store_pixels(DType type, const float* from, int64_t pixels, int64_t channels, void* to, int64_t stride);

}  // namespace cairn::kernels::cpu
