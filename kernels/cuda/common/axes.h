// Walks over the axes of a dense tensor, with strides of another one.
#pragma once
#include <span>

#include "kernels/cuda/common/platform.h"
#include "runtime/base/tensor.h"

namespace cairn::kernels::cuda {

// Of every axis of y, outermost first: its size and its stride in x. At least one axis.
struct Walk {
  int rank = 0;
  int64_t sizes[kMaxRank] = {}, strides[kMaxRank] = {};
};

// Axes of size 1 are removed; neighbouring axes that can be merged in x, too, become one.
inline Walk make_walk(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  Walk walk;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    const int last = walk.rank - 1;
    if (last >= 0 && walk.strides[last] == strides[i] * sizes[i]) {
      walk.sizes[last] *= sizes[i];
      walk.strides[last] = strides[i];
    } else {
      walk.sizes[walk.rank] = sizes[i];
      walk.strides[walk.rank++] = strides[i];
    }
  }
  if (walk.rank == 0) {
    walk.rank = 1;
    walk.sizes[0] = walk.strides[0] = 1;
  }
  return walk;
}

// Where element i of y lies in x.
__device__ __forceinline__ int64_t walk_to(const Walk& walk, int64_t i) {
  int64_t at = 0;
  for (int a = walk.rank - 1; a > 0; --a) {
    const int64_t rest = i / walk.sizes[a];
    at += (i - rest * walk.sizes[a]) * walk.strides[a];
    i = rest;
  }
  return at + i * walk.strides[0];
}

}  // namespace cairn::kernels::cuda
