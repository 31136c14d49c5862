// The optimizers, in double: one struct each, made from the slots of the hyper-parameters
// (runtime/ops/optimizers.cc). Called for an element: its gradient, multiplied by the factor, the parameter
// and its states.
#pragma once
#include <cmath>

#include "runtime/base/optimizers/update.h"

namespace cairn::kernels::reference {

// Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.
struct AdamW {
  static constexpr std::string_view kName = "adamw";
  static constexpr int kStates = 2;
  double rate, beta1, beta2, eps, decay, correction1, correction2;

  explicit AdamW(const double* h)
      : rate(h[0]), beta1(h[1]), beta2(h[2]), eps(h[3]), decay(h[4]), correction1(h[5]), correction2(h[6]) {}
  void operator()(double g, double& p, double* state) const {
    double &first = state[0], &second = state[1];
    first = beta1 * first + (1.0 - beta1) * g;
    second = beta2 * second + (1.0 - beta2) * g * g;
    p -= rate * (first / correction1 / (std::sqrt(second / correction2) + eps) + decay * p);
  }
};

// Kingma and Ba, "Adam: a method for stochastic optimization", 2015; decay as torch.optim.Adam has it.
struct Adam : AdamW {
  static constexpr std::string_view kName = "adam";
  using AdamW::AdamW;
  void operator()(double g, double& p, double* state) const {
    g += decay * p;
    double &first = state[0], &second = state[1];
    first = beta1 * first + (1.0 - beta1) * g;
    second = beta2 * second + (1.0 - beta2) * g * g;
    p -= rate * (first / correction1 / (std::sqrt(second / correction2) + eps));
  }
};

// In bitsandbytes' order: the step, then the decay. Of parameters with few elements the states are plain.
struct AdamW8 : AdamW {
  static constexpr std::string_view kName = "adamw8";
  using AdamW::AdamW;
  void operator()(double g, double& p, double* state) const {
    double &first = state[0], &second = state[1];
    first = beta1 * first + (1.0 - beta1) * g;
    second = beta2 * second + (1.0 - beta2) * g * g;
    p -= rate * (first / correction1 / (std::sqrt(second / correction2) + eps));
    p *= 1.0 - rate * decay;
  }
};
// The same over blocks of 8 bits.
struct AdamW8InBlocks : AdamW8 {
  static constexpr DType kFormats[] = {DType::kDynamic8, DType::kUDynamic8};
  static bool takes_states(const Signature& s, DType) { return takes_formats(s, kFormats); }
  using AdamW8::AdamW8;
};

// As torch.optim.SGD; kMomentum: whether there is a momentum.
template <int kMomentum>
struct Sgd {
  static constexpr std::string_view kName = "sgd";
  static constexpr int kStates = kMomentum;
  double rate, momentum, share, decay;
  bool nesterov;

  explicit Sgd(const double* h) : rate(h[0]), momentum(h[1]), share(h[2]), decay(h[4]), nesterov(h[3] != 0) {}
  void operator()(double g, double& p, double* state) const {
    g += decay * p;
    if constexpr (kMomentum != 0) {
      double& b = state[0];
      b = momentum * b + share * g;
      g = nesterov ? g + momentum * b : b;
    }
    p -= rate * g;
  }
};

// Chen et al., "Symbolic discovery of optimization algorithms", 2023.
struct Lion {
  static constexpr std::string_view kName = "lion";
  static constexpr int kStates = 1;
  double rate, beta1, beta2, decay;

  explicit Lion(const double* h) : rate(h[0]), beta1(h[1]), beta2(h[2]), decay(h[4]) {}
  void operator()(double g, double& p, double* state) const {
    double& m = state[0];
    const double c = beta1 * m + (1.0 - beta1) * g;
    p = p * (1.0 - rate * decay) - rate * ((c > 0) - (c < 0));
    m = beta2 * m + (1.0 - beta2) * g;
  }
};

using Updates = UpdateList<AdamW, Sgd<0>, Sgd<1>, Lion, Adam, AdamW8, AdamW8InBlocks>;

}  // namespace cairn::kernels::reference
