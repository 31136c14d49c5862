// How a row of logits with many classes is cut into units, which are summed one after the other (exponentials.h). The parts of
// a vocabulary end where units do.
#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/base/tensor.h"

namespace cairn::kernels::cuda {

inline constexpr int kRowThreads = 512;  // of a block, at most; exactly so many where a row has several units
inline constexpr int kMostUnits = 8;     // at most one for each warp of the block
inline constexpr int64_t kLeastUnit = 8192;  // columns: two vectors of 16 bits each for every thread

// Columns of a unit; the last one of a row has up to twice as many.
inline int64_t unit_columns(int64_t classes) {
  return kLeastUnit * std::max<int64_t>(1, (classes / kLeastUnit + kMostUnits - 1) / kMostUnits);
}
inline int64_t units_of(int64_t classes) { return std::max<int64_t>(1, classes / unit_columns(classes)); }
// Pairs of vectors that a thread has of a unit.
inline int unit_pairs(int64_t classes, DType logits) {
  return static_cast<int>(unit_columns(classes) * dtype_bytes(logits) / 16 / (2 * kRowThreads));
}

}  // namespace cairn::kernels::cuda
