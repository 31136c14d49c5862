// Kernels that hold a row in registers: a warp for a short row, a block for a long one, a few vectors of 16
// bytes per thread. Rows of other lengths go to kernels that read element by element.
#pragma once
#include <type_traits>

#include "kernels/cuda/common/support.h"

namespace cairn::kernels::cuda {

inline constexpr int kWarpRowThreads = 128;  // of a block whose warps have a row each
// Most threads of a block that has one row: as many as leave them enough registers.
template <class T>
inline constexpr int kBlockRowThreads = sizeof(T) == 2 ? 512 : 1024;
template <class T, bool kWarpRow>
inline constexpr int kRowThreads = kWarpRow ? kWarpRowThreads : kBlockRowThreads<T>;

struct RowLaunch {
  int64_t blocks;
  int threads;
};

// The row of this thread, and its place among those that share it.
struct RowPlace {
  int64_t row;
  int lane, lanes;
};
template <bool kWarpRow>
__device__ __forceinline__ RowPlace row_place() {
  if constexpr (kWarpRow)
    return {static_cast<int64_t>(blockIdx.x) * (kWarpRowThreads / kWarp) + threadIdx.x / kWarp,
            static_cast<int>(threadIdx.x % kWarp), kWarp};
  else
    return {static_cast<int64_t>(blockIdx.x), static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
}
template <bool kWarpRow>
__device__ __forceinline__ float row_sum(float v, float* scratch) {
  if constexpr (kWarpRow)
    return warp_sum(v);
  else
    return block_sum(v, scratch);
}
template <bool kWarpRow>
__device__ __forceinline__ float row_max(float v, float* scratch) {
  if constexpr (kWarpRow)
    return warp_max(v);
  else
    return block_max(v, scratch);
}

// The thread's part of a row of `vectors` vectors as floats; `fill` stands for elements after the row's
// end.
template <class T, int kVectors>
__device__ __forceinline__ void load_row(const T* row, int vectors, const RowPlace& place, float fill,
                                         float (&to)[kVectors * Vector<T>::kCount]) {
  constexpr int kCount = Vector<T>::kCount;
  for (int i = 0; i < kVectors; ++i) {
    const int at = i * place.lanes + place.lane;
    if (at < vectors) {
      const Vector<T> v = load_vector(row + static_cast<int64_t>(at) * kCount);
      for (int j = 0; j < kCount; ++j) to[i * kCount + j] = load(&v.at[j]);
    } else {
      for (int j = 0; j < kCount; ++j) to[i * kCount + j] = fill;
    }
  }
}
template <class T, int kVectors>
__device__ __forceinline__ void store_row(T* row, int vectors, const RowPlace& place,
                                          const float (&from)[kVectors * Vector<T>::kCount]) {
  constexpr int kCount = Vector<T>::kCount;
  for (int i = 0; i < kVectors; ++i) {
    const int at = i * place.lanes + place.lane;
    if (at >= vectors) continue;
    Vector<T> v;
    for (int j = 0; j < kCount; ++j) store(&v.at[j], from[i * kCount + j]);
    store_vector(row + static_cast<int64_t>(at) * kCount, v);
  }
}

// Calls body(vectors per thread, warp per row?, launch) with the first two as constants; false if rows do not
// go by vectors or are too long. A warp takes rows of up to 4 vectors per lane, of up to 8 if kLongWarpRows.
template <class T, bool kLongWarpRows = false, class Body>
bool with_row_in_registers(int64_t rows, int64_t columns, const Body& body) {
  constexpr int64_t kCount = 16 / static_cast<int64_t>(sizeof(T)), kMax = 4;
  if (columns % kCount != 0 || columns / kCount > kMax * kBlockRowThreads<T>) return false;
  const int64_t vectors = columns / kCount, per_lane = (vectors + kWarp - 1) / kWarp;
  constexpr std::integral_constant<int, 1> one;
  constexpr std::integral_constant<int, 2> two;
  constexpr std::integral_constant<int, 3> three;
  constexpr std::integral_constant<int, 4> four;
  if (per_lane <= (kLongWarpRows ? 2 * kMax : kMax)) {
    constexpr int64_t kRows = kWarpRowThreads / kWarp;
    const RowLaunch size{(rows + kRows - 1) / kRows, kWarpRowThreads};
    constexpr std::true_type warp;
    if constexpr (kLongWarpRows) {
      if (per_lane > kMax) {
        body(std::integral_constant<int, 2 * kMax>(), warp, size);
        return true;
      }
    }
    per_lane == 1   ? body(one, warp, size)
    : per_lane == 2 ? body(two, warp, size)
    : per_lane == 3 ? body(three, warp, size)
                    : body(four, warp, size);
    return true;
  }
  const int64_t each = vectors <= 512 ? 2 : 4, threads = (vectors + each - 1) / each;
  const RowLaunch size{rows, static_cast<int>((threads + kWarp - 1) / kWarp * kWarp)};
  constexpr std::false_type warp;
  each == 2 ? body(two, warp, size) : body(four, warp, size);
  return true;
}

}  // namespace cairn::kernels::cuda
