// The update of a block of a tensor whose states are blocks of a dynamic 8-bit format
// (runtime/formats/dynamic8.h): a warp each, eight elements a lane, so that a block's largest number is found among
// registers.
#pragma once
#include "kernels/cuda/optimizers/optimizer.h"
#include "runtime/formats/dynamic8.h"

namespace cairn::kernels::cuda {

static __device__ const DynamicMap kDeviceMaps[] = {DynamicMap(false), DynamicMap(true)};  // by has_sign()

inline constexpr int kBlocksAtOnce = kOptimizerThreads / kWarp;  // of a block of threads

// A bit for each state whose map has signs: an array of a struct has no address on the device.
template <class Optimizer>
constexpr uint32_t kSignedStates = [] {
  uint32_t bits = 0;
  for (int k = 0; k < Optimizer::kStates; ++k) bits |= has_sign(Optimizer::kFormats[k]) ? 1u << k : 0u;
  return bits;
}();

// The values of the states' maps, in shared memory. All of the block of threads calls; a barrier is needed
// before what is there is read.
template <class Optimizer>
__device__ __forceinline__ void stage_maps(float (*values)[kDynamicCodes]) {
  CAIRN_UNROLL for (int k = 0; k < Optimizer::kStates; ++k) {
    const DynamicMap& map = kDeviceMaps[kSignedStates<Optimizer> >> k & 1u];
    for (int code = static_cast<int>(threadIdx.x); code < kDynamicCodes; code += kOptimizerThreads)
      values[k][code] = map.values[code];
  }
}

// `count` elements of a tensor from where a block begins, 256 but at the tensor's end.
template <class Optimizer>
struct WarpBlock {
  static constexpr int kEach = 4, kHalves = 2;  // a lane's elements: `kEach` of each half of the block
  static_assert(kEach * kHalves * kWarp == kDynamicBlock);
  static constexpr int kStates = Optimizer::kStates;

  int lane, count;
  Group<kEach> grad[kHalves], p[kHalves];
  uint32_t codes[kStates][kHalves];
  float scales[kStates];

  __device__ __forceinline__ int first(int half) const { return (half * kWarp + lane) * kEach; }

  // from_p: where its first element lies.
  template <class From>
  __device__ __forceinline__ void read_all(const float* from_grad, const From& from_p,
                                           const DynamicBlock* const* from) {
    CAIRN_UNROLL for (int h = 0; h < kHalves; ++h) {
      const int begin = first(h);
      if (begin + kEach <= count) {
        grad[h] = read<kEach>(from_grad + begin);
        p[h] = read<kEach>(from_p + begin);
      } else {
        CAIRN_UNROLL for (int i = 0; i < kEach; ++i) {
          grad[h].at[i] = begin + i < count ? from_grad[begin + i] : 0.0f;
          p[h].at[i] = begin + i < count ? load(from_p + begin + i) : 0.0f;
        }
      }
      CAIRN_UNROLL for (int k = 0; k < kStates; ++k) codes[k][h] =
          reinterpret_cast<const uint32_t*>(from[k]->codes)[h * kWarp + lane];
    }
    CAIRN_UNROLL for (int k = 0; k < kStates; ++k) scales[k] = from[k]->scale;
  }

  // The parameter's elements, and the states' new blocks.
  __device__ __forceinline__ void update(const Optimizer& optimizer, const float (*values)[kDynamicCodes],
                                         DynamicBlock* const* to) {
    float numbers[kStates][kHalves][kEach], largest[kStates] = {};
    CAIRN_UNROLL for (int h = 0; h < kHalves; ++h) {
      CAIRN_UNROLL for (int i = 0; i < kEach; ++i) {
        float state[kStates];
        CAIRN_UNROLL for (int k = 0; k < kStates; ++k) state[k] =
            values[k][codes[k][h] >> (8 * i) & 0xffu] * scales[k];
        optimizer(grad[h].at[i], p[h].at[i], state);
        CAIRN_UNROLL for (int k = 0; k < kStates; ++k) {
          numbers[k][h][i] = state[k];
          largest[k] = fmaxf(largest[k], fabsf(state[k]));
        }
      }
    }
    CAIRN_UNROLL for (int k = 0; k < kStates; ++k) {
      largest[k] = warp_max(largest[k]);
      const DynamicFactors factors = dynamic_factors(largest[k]);
      CAIRN_UNROLL for (int h = 0; h < kHalves; ++h) {
        uint32_t word = 0;
        CAIRN_UNROLL for (int i = 0; i < kEach; ++i) word |=
            static_cast<uint32_t>(code_of(kSignedStates<Optimizer> >> k & 1u, values[k],
                                          numbers[k][h][i] * factors.first * factors.second))
            << (8 * i);
        reinterpret_cast<uint32_t*>(to[k]->codes)[h * kWarp + lane] = word;
      }
      if (lane == 0) to[k]->scale = largest[k];
    }
  }

  // to: a parameter, or Nearest.
  template <class To>
  __device__ __forceinline__ void write_all(const To& to) const {
    CAIRN_UNROLL for (int h = 0; h < kHalves; ++h) {
      const int begin = first(h);
      if (begin + kEach <= count) {
        to.put(begin, p[h]);
      } else {
        CAIRN_UNROLL for (int i = 0; i < kEach; ++i) if (begin + i < count)
            to.put(begin + i, Group<1>{{p[h].at[i]}});
      }
    }
  }

 private:
  static __device__ __forceinline__ int code_of(bool with_sign, const float* values, float x) {
    const int zero = with_sign ? 127 : 0, most = kDynamicCodes - 1 - zero;
    const auto middle = [&](int place) { return (values[zero + place] + values[zero + place + 1]) * 0.5f; };
    return dynamic_code(zero, nearest_place(middle, most, fabsf(x)), x < 0);
  }
};

// The states of a tensor of an optimizer with kFormats, from its block `begin` on.
template <int kStates>
struct StateBlocks {
  DynamicBlock* at[kStates];

  __device__ __forceinline__ StateBlocks(float* const* states, int64_t begin) {
    CAIRN_UNROLL for (int k = 0; k < kStates; ++k) at[k] = reinterpret_cast<DynamicBlock*>(states[k]) + begin;
  }
};

}  // namespace cairn::kernels::cuda
