// The functions of elementwise.def in double: f(x), and its gradient f_grad(dy, x) = dy f'(x). Formulas:
// Hendrycks and Gimpel, "Gaussian error linear units", 2016 (both forms of gelu); Elfwing et al., 2018
// (silu).
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

namespace cairn::kernels::reference {

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

inline double gelu_tanh(double x) {
  const double u = std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(u));
}
inline double gelu_tanh_grad(double dy, double x) {
  const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * c * (1.0 + 3 * 0.044715 * x * x));
}

inline double gelu_erf(double x) { return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)); }
inline double gelu_erf_grad(double dy, double x) {
  const double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2 * std::exp(-0.5 * x * x);
  return dy * (0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) + x * density);
}

inline double silu(double x) { return x * sigmoid(x); }
inline double silu_grad(double dy, double x) {
  const double s = sigmoid(x);
  return dy * (s * (1.0 + x * (1.0 - s)));
}

// NaN for NaN.
inline double relu(double x) { return x < 0 ? 0.0 : x; }
// By the argument or the result; 0 where the derivative is, also where dy is not finite. A NaN lets dy through.
inline double relu_grad(double dy, double y) { return y <= 0 ? 0.0 : dy; }

inline double sigmoid_grad(double dy, double y) { return dy * y * (1.0 - y); }

inline double tanh(double x) { return std::tanh(x); }
inline double tanh_grad(double dy, double y) { return dy * (1.0 - y * y); }

inline double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
inline double softplus_grad(double dy, double x) { return dy * sigmoid(x); }

inline double exponential(double x) { return std::exp(x); }
inline double exponential_grad(double dy, double y) { return dy * y; }

inline double logarithm(double x) { return std::log(x); }
inline double logarithm_grad(double dy, double x) { return dy / x; }

inline double square_root(double x) { return std::sqrt(x); }
inline double square_root_grad(double dy, double y) { return dy / (2.0 * y); }

inline double magnitude(double x) { return std::fabs(x); }
inline double magnitude_grad(double dy, double x) { return x > 0 ? dy : x < 0 ? -dy : x == 0 ? 0.0 : x; }

// A row of elementwise.def.
struct Activation {
  std::string_view name, op, choice;
  double (*function)(double);
  double (*gradient)(double dy, double x);
};
inline constexpr Activation kActivations[] = {
#define FUNCTION(name, op, choice) {#name, #op, choice, name, name##_grad},
#define PLAIN(name, op) {#name, #op, "", name, name##_grad},
#include "runtime/base/elementwise.def"
};

}  // namespace cairn::kernels::reference
