// The optimizers over float32: one struct each, whose factors are made from the slots of the hyper-parameters
// (runtime/ops/optimizers.cc) and rounded to float32 once; and for every Highway target `update` of a vector:
// its gradient as it is, the parameter and its states.
#ifndef CAIRN_KERNELS_CPU_UPDATES_FACTORS_
#define CAIRN_KERNELS_CPU_UPDATES_FACTORS_
#include <cmath>

#include "runtime/base/optimizers/update.h"

namespace cairn::kernels::cpu {

struct AdamW {
  static constexpr std::string_view kName = "adamw";
  static constexpr int kStates = 2;
  float gradient;  // multiplies the gradient first: 1 / denominator, clip
  float one_minus_beta1, beta2, one_minus_beta2;
  float root_bias2;  // sqrt(1 - beta2^t)
  float eps;
  float decay;  // 1 - rate * weight_decay
  float step;   // rate / (1 - beta1^t)

  AdamW(const double* h, double factor)
      : gradient(static_cast<float>(factor)),
        one_minus_beta1(static_cast<float>(1 - h[1])),
        beta2(static_cast<float>(h[2])),
        one_minus_beta2(static_cast<float>(1 - h[2])),
        root_bias2(static_cast<float>(std::sqrt(h[6]))),
        eps(static_cast<float>(h[3])),
        decay(static_cast<float>(1 - h[0] * h[4])),
        step(static_cast<float>(h[0] / h[5])) {}
};

struct Adam {
  static constexpr std::string_view kName = "adam";
  static constexpr int kStates = 2;
  float gradient, one_minus_beta1, beta2, one_minus_beta2, root_bias2, eps;
  float decay;  // weight_decay
  float step;   // rate / (1 - beta1^t)

  Adam(const double* h, double factor)
      : gradient(static_cast<float>(factor)),
        one_minus_beta1(static_cast<float>(1 - h[1])),
        beta2(static_cast<float>(h[2])),
        one_minus_beta2(static_cast<float>(1 - h[2])),
        root_bias2(static_cast<float>(std::sqrt(h[6]))),
        eps(static_cast<float>(h[3])),
        decay(static_cast<float>(h[4])),
        step(static_cast<float>(h[0] / h[5])) {}
};

// Of parameters with few elements, whose states are plain.
struct AdamW8 {
  static constexpr std::string_view kName = "adamw8";
  static constexpr int kStates = 2;
  float gradient, beta1, one_minus_beta1, beta2, one_minus_beta2;
  float eps;    // times sqrt(1 - beta2^t)
  float decay;  // 1 - rate * weight_decay
  float step;   // rate * sqrt(1 - beta2^t) / (1 - beta1^t)

  AdamW8(const double* h, double factor)
      : gradient(static_cast<float>(factor)),
        beta1(static_cast<float>(h[1])),
        one_minus_beta1(static_cast<float>(1 - h[1])),
        beta2(static_cast<float>(h[2])),
        one_minus_beta2(static_cast<float>(1 - h[2])),
        eps(static_cast<float>(h[3] * std::sqrt(h[6]))),
        decay(static_cast<float>(1 - h[0] * h[4])),
        step(static_cast<float>(h[0] * std::sqrt(h[6]) / h[5])) {}
};
// The same over blocks of 8 bits.
struct AdamW8InBlocks : AdamW8 {
  static constexpr DType kFormats[] = {DType::kDynamic8, DType::kUDynamic8};
  static bool takes_states(const Signature& s, DType) { return takes_formats(s, kFormats); }
  using AdamW8::AdamW8;
};

// kMomentum: whether there is a momentum.
template <int kMomentum>
struct Sgd {
  static constexpr std::string_view kName = "sgd";
  static constexpr int kStates = kMomentum;
  float gradient, rate, momentum;
  float share;  // of the gradient in a new momentum
  float decay;  // weight_decay
  bool nesterov;

  Sgd(const double* h, double factor)
      : gradient(static_cast<float>(factor)),
        rate(static_cast<float>(h[0])),
        momentum(static_cast<float>(h[1])),
        share(static_cast<float>(h[2])),
        decay(static_cast<float>(h[4])),
        nesterov(h[3] != 0) {}
};

struct Lion {
  static constexpr std::string_view kName = "lion";
  static constexpr int kStates = 1;
  float gradient, rate, beta1, one_minus_beta1, beta2, one_minus_beta2;
  float decay;  // 1 - rate * weight_decay

  Lion(const double* h, double factor)
      : gradient(static_cast<float>(factor)),
        rate(static_cast<float>(h[0])),
        beta1(static_cast<float>(h[1])),
        one_minus_beta1(static_cast<float>(1 - h[1])),
        beta2(static_cast<float>(h[2])),
        one_minus_beta2(static_cast<float>(1 - h[2])),
        decay(static_cast<float>(1 - h[0] * h[4])) {}
};

using Updates = UpdateList<AdamW, Sgd<0>, Sgd<1>, Lion, Adam, AdamW8, AdamW8InBlocks>;

}  // namespace cairn::kernels::cpu
#endif

#if defined(CAIRN_KERNELS_CPU_UPDATES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_UPDATES_INL_H_
#undef CAIRN_KERNELS_CPU_UPDATES_INL_H_
#else
#define CAIRN_KERNELS_CPU_UPDATES_INL_H_
#endif

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// The order of operations of torch.optim.AdamW.
HWY_INLINE void update(const AdamW& f, V grad, V& p, VectorSlot* state) {
  V &m = state[0], &v = state[1];
  const V g = hn::Mul(grad, set(f.gradient));
  m = hn::MulAdd(hn::Sub(g, m), set(f.one_minus_beta1), m);
  v = hn::MulAdd(hn::Mul(g, g), set(f.one_minus_beta2), hn::Mul(v, set(f.beta2)));
  const V denominator = hn::Add(hn::Div(hn::Sqrt(v), set(f.root_bias2)), set(f.eps));
  p = hn::NegMulAdd(set(f.step), hn::Div(m, denominator), hn::Mul(p, set(f.decay)));
}

// The order of operations of torch.optim.Adam.
HWY_INLINE void update(const Adam& f, V grad, V& p, VectorSlot* state) {
  V &m = state[0], &v = state[1];
  const V g = hn::MulAdd(p, set(f.decay), hn::Mul(grad, set(f.gradient)));
  m = hn::MulAdd(hn::Sub(g, m), set(f.one_minus_beta1), m);
  v = hn::MulAdd(hn::Mul(g, g), set(f.one_minus_beta2), hn::Mul(v, set(f.beta2)));
  const V denominator = hn::Add(hn::Div(hn::Sqrt(v), set(f.root_bias2)), set(f.eps));
  p = hn::NegMulAdd(set(f.step), hn::Div(m, denominator), p);
}

// The order of operations of bitsandbytes' 8-bit Adam with decay.
HWY_INLINE void update(const AdamW8& f, V grad, V& p, VectorSlot* state) {
  V &m = state[0], &v = state[1];
  const V g = hn::Mul(grad, set(f.gradient));
  m = hn::MulAdd(g, set(f.one_minus_beta1), hn::Mul(m, set(f.beta1)));
  v = hn::MulAdd(hn::Mul(g, g), set(f.one_minus_beta2), hn::Mul(v, set(f.beta2)));
  const V denominator = hn::Add(hn::Sqrt(v), set(f.eps));
  p = hn::Mul(hn::NegMulAdd(set(f.step), hn::Div(m, denominator), p), set(f.decay));
}

// The order of operations of torch.optim.SGD.
template <int kMomentum>
HWY_INLINE void update(const Sgd<kMomentum>& f, V grad, V& p, VectorSlot* state) {
  V g = hn::MulAdd(p, set(f.decay), hn::Mul(grad, set(f.gradient)));
  if constexpr (kMomentum != 0) {
    V& b = state[0];
    b = hn::MulAdd(g, set(f.share), hn::Mul(b, set(f.momentum)));
    g = f.nesterov ? hn::MulAdd(b, set(f.momentum), g) : b;
  }
  p = hn::NegMulAdd(set(f.rate), g, p);
}

// Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2.
HWY_INLINE void update(const Lion& f, V grad, V& p, VectorSlot* state) {
  V& m = state[0];
  const V g = hn::Mul(grad, set(f.gradient)), zero = hn::Zero(DF());
  const V c = hn::MulAdd(g, set(f.one_minus_beta1), hn::Mul(m, set(f.beta1)));
  const V step = hn::IfThenElseZero(hn::Gt(hn::Abs(c), zero), hn::CopySign(set(f.rate), c));
  p = hn::Sub(hn::Mul(p, set(f.decay)), step);
  m = hn::MulAdd(g, set(f.one_minus_beta2), hn::Mul(m, set(f.beta2)));
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
