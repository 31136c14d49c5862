// The optimizers over float32: one struct each, whose factors are made from the slots of the hyper-parameters
// (runtime/ops/optimizers.cc) and rounded to float32 once. Called for an element: its gradient as it is, the
// parameter and its states, in the order of operations of kernels/cpu/simd/updates-inl.h.
#pragma once
#include <cmath>

#include "kernels/cuda/common/support.h"
#include "runtime/base/optimizers/update.h"

namespace cairn::kernels::cuda {

struct AdamW {
  static constexpr std::string_view kName = "adamw";
  static constexpr int kStates = 2;
  float gradient, one_minus_beta1, beta2, one_minus_beta2, root_bias2, eps, decay, step;

  static __device__ __forceinline__ AdamW of(const double* hyper, double factor) {
    const double rate = hyper[0], beta1 = hyper[1], beta2 = hyper[2];
    return {.gradient = static_cast<float>(factor),
            .one_minus_beta1 = static_cast<float>(1 - beta1),
            .beta2 = static_cast<float>(beta2),
            .one_minus_beta2 = static_cast<float>(1 - beta2),
            .root_bias2 = static_cast<float>(sqrt(hyper[6])),
            .eps = static_cast<float>(hyper[3]),
            .decay = static_cast<float>(1 - rate * hyper[4]),
            .step = static_cast<float>(rate / hyper[5])};
  }
  __device__ __forceinline__ void operator()(float grad, float& p, float* state) const {
    float &m = state[0], &v = state[1];
    const float g = times(grad, gradient);
    m = fmaf(g - m, one_minus_beta1, m);
    v = fmaf(times(g, g), one_minus_beta2, times(v, beta2));
    const float denominator = sqrtf(v) / root_bias2 + eps;
    p = fmaf(-step, m / denominator, times(p, decay));
  }
};

struct Adam {
  static constexpr std::string_view kName = "adam";
  static constexpr int kStates = 2;
  float gradient, one_minus_beta1, beta2, one_minus_beta2, root_bias2, eps, decay, step;

  static __device__ __forceinline__ Adam of(const double* hyper, double factor) {
    const AdamW same = AdamW::of(hyper, factor);
    return {.gradient = same.gradient,
            .one_minus_beta1 = same.one_minus_beta1,
            .beta2 = same.beta2,
            .one_minus_beta2 = same.one_minus_beta2,
            .root_bias2 = same.root_bias2,
            .eps = same.eps,
            .decay = static_cast<float>(hyper[4]),
            .step = same.step};
  }
  __device__ __forceinline__ void operator()(float grad, float& p, float* state) const {
    float &m = state[0], &v = state[1];
    const float g = fmaf(p, decay, times(grad, gradient));
    m = fmaf(g - m, one_minus_beta1, m);
    v = fmaf(times(g, g), one_minus_beta2, times(v, beta2));
    p = fmaf(-step, m / (sqrtf(v) / root_bias2 + eps), p);
  }
};

// Of parameters with few elements, whose states are plain.
struct AdamW8 {
  static constexpr std::string_view kName = "adamw8";
  static constexpr int kStates = 2;
  float gradient, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, decay, step;

  static __device__ __forceinline__ AdamW8 of(const double* hyper, double factor) {
    const double rate = hyper[0], beta1 = hyper[1], beta2 = hyper[2], root_bias2 = sqrt(hyper[6]);
    return {.gradient = static_cast<float>(factor),
            .beta1 = static_cast<float>(beta1),
            .one_minus_beta1 = static_cast<float>(1 - beta1),
            .beta2 = static_cast<float>(beta2),
            .one_minus_beta2 = static_cast<float>(1 - beta2),
            .eps = static_cast<float>(hyper[3] * root_bias2),
            .decay = static_cast<float>(1 - rate * hyper[4]),
            .step = static_cast<float>(rate * root_bias2 / hyper[5])};
  }
  __device__ __forceinline__ void operator()(float grad, float& p, float* state) const {
    float &m = state[0], &v = state[1];
    const float g = times(grad, gradient);
    m = fmaf(g, one_minus_beta1, times(m, beta1));
    v = fmaf(times(g, g), one_minus_beta2, times(v, beta2));
    p = times(fmaf(-step, m / (sqrtf(v) + eps), p), decay);
  }
};
// The same over blocks of 8 bits.
struct AdamW8InBlocks : AdamW8 {
  static constexpr DType kFormats[] = {DType::kDynamic8, DType::kUDynamic8};
  static bool takes_states(const Signature& s, DType) { return takes_formats(s, kFormats); }

  static __device__ __forceinline__ AdamW8InBlocks of(const double* hyper, double factor) {
    return {AdamW8::of(hyper, factor)};
  }
};

// kMomentum: whether there is a momentum.
template <int kMomentum>
struct Sgd {
  static constexpr std::string_view kName = "sgd";
  static constexpr int kStates = kMomentum;
  float gradient, rate, momentum, share, decay;
  bool nesterov;

  static __device__ __forceinline__ Sgd of(const double* hyper, double factor) {
    return {.gradient = static_cast<float>(factor),
            .rate = static_cast<float>(hyper[0]),
            .momentum = static_cast<float>(hyper[1]),
            .share = static_cast<float>(hyper[2]),
            .decay = static_cast<float>(hyper[4]),
            .nesterov = hyper[3] != 0};
  }
  __device__ __forceinline__ void operator()(float grad, float& p, float* state) const {
    float g = fmaf(p, decay, times(grad, gradient));
    if constexpr (kMomentum != 0) {
      float& b = state[0];
      b = fmaf(g, share, times(b, momentum));
      g = nesterov ? fmaf(b, momentum, g) : b;
    }
    p = fmaf(-rate, g, p);
  }
};

struct Lion {
  static constexpr std::string_view kName = "lion";
  static constexpr int kStates = 1;
  float gradient, rate, beta1, one_minus_beta1, beta2, one_minus_beta2, decay;

  static __device__ __forceinline__ Lion of(const double* hyper, double factor) {
    const double rate = hyper[0], beta1 = hyper[1], beta2 = hyper[2];
    return {.gradient = static_cast<float>(factor),
            .rate = static_cast<float>(rate),
            .beta1 = static_cast<float>(beta1),
            .one_minus_beta1 = static_cast<float>(1 - beta1),
            .beta2 = static_cast<float>(beta2),
            .one_minus_beta2 = static_cast<float>(1 - beta2),
            .decay = static_cast<float>(1 - rate * hyper[4])};
  }
  __device__ __forceinline__ void operator()(float grad, float& p, float* state) const {
    float& m = state[0];
    const float g = times(grad, gradient), c = fmaf(g, one_minus_beta1, times(m, beta1));
    const float step = c > 0 ? rate : c < 0 ? -rate : 0.0f;
    p = times(p, decay) - step;
    m = fmaf(g, one_minus_beta2, times(m, beta2));
  }
};

using Updates = UpdateList<AdamW, Sgd<0>, Sgd<1>, Lion, Adam, AdamW8, AdamW8InBlocks>;

}  // namespace cairn::kernels::cuda
