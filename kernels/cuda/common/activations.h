// The functions of elementwise.def in float32, as kernels/cpu/simd/activation-inl.h has them: f(x), and its
// gradient f_grad(dy, x) = dy f'(x).
#pragma once
#include "kernels/cuda/common/platform.h"

namespace cairn::kernels::cuda {

inline constexpr float kSqrt2OverPi = 0.7978845608028654f, kCubic = 0.044715f, kLog2E = 1.4426950408889634f;
inline constexpr float kRootHalf = 0.7071067811865476f, kNormalDensity = 0.3989422804014327f;

// Single instructions of the GPU, within two units in the last place. Results below the normal numbers are 0.
__device__ __forceinline__ float reciprocal(float y) {
#ifdef __CUDACC__
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  return r;
#else
  return 1.0f / y;
#endif
}
__device__ __forceinline__ float power_of_two(float x) {
#ifdef __CUDACC__
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#else
  return exp2f(x);
#endif
}

__device__ __forceinline__ float sigmoid(float x) { return reciprocal(1.0f + expf(-x)); }

// (1 + tanh u) / 2 = sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): Hendrycks and Gimpel, 2016.
__device__ __forceinline__ float gelu_gate(float x, float xx) {
  constexpr float kOne = -2.0f * kSqrt2OverPi * kLog2E;
  return reciprocal(1.0f + power_of_two(x * fmaf(kOne * kCubic, xx, kOne)));
}
// Phi(x) = erfc(-x / sqrt 2) / 2; erfc(|z|) within 1.2e-7 relative: Chebyshev fit of Press et al., Numerical
// Recipes, 6.2.
__device__ __forceinline__ float normal_cdf(float x) {
  const float z = kRootHalf * fabsf(x), t = reciprocal(fmaf(0.5f, z, 1.0f));
  float p = fmaf(0.17087277f, t, -0.82215223f);
  p = fmaf(p, t, 1.48851587f);
  p = fmaf(p, t, -1.13520398f);
  p = fmaf(p, t, 0.27886807f);
  p = fmaf(p, t, -0.18628806f);
  p = fmaf(p, t, 0.09678418f);
  p = fmaf(p, t, 0.37409196f);
  p = fmaf(p, t, 1.00002368f);
  p = fmaf(p, t, -1.26551223f);
  const float tail = 0.5f * t * expf(fmaf(-z, z, p));
  return x < 0.0f ? tail : 1.0f - tail;
}

__device__ __forceinline__ float gelu_tanh(float x) { return x * gelu_gate(x, x * x); }
__device__ __forceinline__ float gelu_tanh_grad(float dy, float x) {
  // Where the gate is long 0 or 1, so that the squares of large numbers are none that 0 times is NaN.
  const float xx = fminf(x * x, 1e4f), s = gelu_gate(x, xx);
  const float twice_du = 2.0f * kSqrt2OverPi * fmaf(3.0f * kCubic, xx, 1.0f);
  return dy * fmaf(x, s * (1.0f - s) * twice_du, s);
}

__device__ __forceinline__ float gelu_erf(float x) { return x * normal_cdf(x); }
__device__ __forceinline__ float gelu_erf_grad(float dy, float x) {
  return dy * fmaf(x, kNormalDensity * expf(-0.5f * (x * x)), normal_cdf(x));
}

__device__ __forceinline__ float silu(float x) { return x * sigmoid(x); }
// d/dx x s(x) = s (1 + x (1 - s))
__device__ __forceinline__ float silu_grad(float dy, float x) {
  const float s = sigmoid(x);
  return dy * (s * fmaf(x, 1.0f - s, 1.0f));
}

__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }  // NaN for NaN
// By the argument or the result; a NaN lets dy through.
__device__ __forceinline__ float relu_grad(float dy, float y) { return y <= 0.0f ? 0.0f : dy; }

__device__ __forceinline__ float sigmoid_grad(float dy, float y) { return dy * (y * (1.0f - y)); }

__device__ __forceinline__ float tanh(float x) { return tanhf(x); }
__device__ __forceinline__ float tanh_grad(float dy, float y) { return dy * fmaf(-y, y, 1.0f); }

// NaN for NaN: the maximum would give its other operand.
__device__ __forceinline__ float softplus(float x) {
  return x != x ? x : fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}
__device__ __forceinline__ float softplus_grad(float dy, float x) { return dy * sigmoid(x); }

__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ float exponential_grad(float dy, float y) { return dy * y; }

__device__ __forceinline__ float logarithm(float x) { return logf(x); }
__device__ __forceinline__ float logarithm_grad(float dy, float x) { return dy / x; }

__device__ __forceinline__ float square_root(float x) { return sqrtf(x); }
__device__ __forceinline__ float square_root_grad(float dy, float y) { return dy / (y + y); }

__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ float magnitude_grad(float dy, float x) {
  return x > 0.0f ? dy : x < 0.0f ? -dy : x == 0.0f ? 0.0f : x;
}

// As types, for kernels that take a function.
#define FUNCTION(name, ...)                                                             \
  struct Function_##name {                                                              \
    __device__ float operator()(float x) const { return name(x); }                      \
  };                                                                                    \
  struct Gradient_##name {                                                              \
    __device__ float operator()(float dy, float x) const { return name##_grad(dy, x); } \
  };
#define PLAIN(name, ...) FUNCTION(name)
#include "runtime/base/elementwise.def"

}  // namespace cairn::kernels::cuda
