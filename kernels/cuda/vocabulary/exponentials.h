// Sums of exponentials over a row of logits, and what a row's loss and gradient are made of. A row with many classes is
// cut into units: each is summed by itself, then the units one after the other. So a vocabulary whose parts end where
// units do gets the bits of one in one piece.
#pragma once
#include <cmath>

#include "kernels/cuda/common/activations.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/mma.h"
#include "kernels/cuda/vocabulary/units.h"

namespace cairn::kernels::cuda {

// The largest of numbers seen so far, in powers of two, and the sum of exponentials against it. It starts above
// -infinity: against that, differences would be NaN. Numbers beyond 1e38 count as infinite.
struct Exponentials {
  static constexpr float kLeastBase = -1e38f;
  float base = kLeastBase, sum = 0;

  // The base of numbers of which `most` is the largest.
  static __device__ __forceinline__ float base_of(float most) { return fmaxf(kLeastBase, most * kLog2E); }

  __device__ __forceinline__ float of(float x) const { return fast_exp2(fmaf(x, kLog2E, -base)); }

  template <int kCount>
  __device__ __forceinline__ void take(const float (&v)[kCount]) {
    float most = v[0];
    for (int i = 1; i < kCount; ++i) most = fmaxf(most, v[i]);
    const float before = base;
    base = fmaxf(base, most * kLog2E);
    float sums[2] = {fmaf(sum, fast_exp2(before - base), of(v[0])), 0};  // two chains of additions
    for (int i = 1; i < kCount; ++i) sums[i % 2] += of(v[i]);
    sum = sums[0] + sums[1];
  }
  // A thread's vectors `at` and, `threads` after it, the second; of a row's, `limit` of which there are.
  template <class T>
  __device__ __forceinline__ void take_two(const T* from, int at, int limit, int threads) {
    constexpr int kCount = kGroupOf<T>;
    float v[2 * kCount];
    for (int s = 0; s < 2; ++s) {
      Group<kCount> group;
      for (int i = 0; i < kCount; ++i) group.at[i] = -INFINITY;
      if (at + s * threads < limit) group = read<kCount>(from + (at + s * threads) * kCount);
      for (int i = 0; i < kCount; ++i) v[s * kCount + i] = group.at[i];
    }
    take(v);
  }
  __device__ __forceinline__ void take_one(float x) {
    const float one[1] = {x};
    take(one);
  }

  __device__ __forceinline__ void join_lanes() {
    const float before = base;
    base = warp_max(base);
    sum = warp_sum(times(sum, fast_exp2(before - base)));
  }
  // Each warp's, for the block.
  __device__ __forceinline__ void leave(float2* of_warps) {
    join_lanes();
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = make_float2(base, sum);
  }
  // Of what the block's warps left, by all lanes of a warp.
  __device__ __forceinline__ void join_warps(const float2* of_warps) {
    const int warps = static_cast<int>(blockDim.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
    const float2 of_warp = of_warps[lane < warps ? lane : 0];
    base = of_warp.x;
    sum = lane < warps ? of_warp.y : 0.0f;
    join_lanes();
  }
  // Of all threads of the block. `scratch` is free again after the next barrier but one.
  __device__ __forceinline__ void join(float2* scratch) {
    if (blockDim.x == kWarp) return join_lanes();
    leave(scratch);
    __syncthreads();
    join_warps(scratch);
  }

  // Adds the sum of the next unit to `total`, which is a sum against this base.
  __device__ __forceinline__ float with_unit(float total, float2 unit) const {
    return fmaf(unit.y, fast_exp2(unit.x - base), total);
  }
};

// Joins the sums of a row's units (units.h) over a block of kRowThreads threads: each warp stores its sum of every unit here.
struct UnitSums {
  float2 of_warps[kMostUnits][kRowThreads / kWarp];
  float2 of_units[kMostUnits];
};
// Counts the pairs of vectors that a thread reads, to know where a unit of the row ends.
struct UnitCursor {
  int unit = 0, left;

  __device__ __forceinline__ explicit UnitCursor(int pairs) : left(pairs) {}
  // After each pair: true where a unit that is not the last one ends.
  __device__ __forceinline__ bool ends(int units, int pairs) {
    if (--left > 0 || unit + 1 >= units) return false;
    left = pairs;
    ++unit;
    return true;
  }
};
// Joins all units; there is a barrier before and after.
__device__ __forceinline__ void join_units(Exponentials last, int units, UnitSums* sums) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  last.leave(sums->of_warps[units - 1]);
  __syncthreads();
  if (warp < units) {
    Exponentials unit;
    unit.join_warps(sums->of_warps[warp]);
    if (threadIdx.x % kWarp == 0) sums->of_units[warp] = make_float2(unit.base, unit.sum);
  }
  __syncthreads();
}

// What the loss and the gradient of a row need from its logits, whether the row is in one piece or in parts.
struct RowLoss {
  float error, of_target,
      scale;  // error: the loss over ln 2; the others: factors of the target's gradient and of the exponentials
  float alike = 0;  // label smoothing: subtracted from the gradient of every logit

  __device__ __forceinline__ RowLoss(const Exponentials& e, float at_target, float weight, float dloss)
      : error(fmaf(-at_target, kLog2E, e.base) + log2f(e.sum)),
        of_target(times(weight, dloss)),
        scale(error != error ? NAN : of_target / e.sum) {}
  // Label smoothing: the share `smoothing` of the target is spread evenly over all classes. mean: of the row's logits.
  __device__ __forceinline__ void smooth(float smoothing, float at_target, float mean, int64_t classes) {
    error += smoothing * (at_target - mean) * kLog2E;
    alike = of_target * (smoothing / static_cast<float>(classes));
    of_target = of_target * (1.0f - smoothing);
  }
  __device__ __forceinline__ double loss(float weight) const {
    return static_cast<double>(weight) * (0.69314718055994531 * static_cast<double>(error));
  }
  __device__ __forceinline__ float gradient(const Exponentials& e, float x) const {
    return times(scale, e.of(x)) - alike;
  }
  __device__ __forceinline__ float gradient_at_target(const Exponentials& e, float x) const {
    return fmaf(scale, e.of(x), -of_target) - alike;
  }
};

}  // namespace cairn::kernels::cuda
