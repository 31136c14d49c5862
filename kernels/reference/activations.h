// The activation functions and their derivatives, in double. Formulas: Hendrycks and Gimpel, "Gaussian error
// linear units", 2016 (both forms of gelu); Elfwing et al., 2018 (silu).
#pragma once
#include <cmath>
#include <numbers>
#include <string_view>

namespace cairn::kernels::reference {

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

inline double gelu_tanh(double x) {
  const double u = std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(u));
}
inline double gelu_tanh_derivative(double x) {
  const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * c * (1.0 + 3 * 0.044715 * x * x);
}

inline double gelu_erf(double x) { return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)); }
inline double gelu_erf_derivative(double x) {
  const double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2 * std::exp(-0.5 * x * x);
  return 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) + x * density;
}

inline double silu(double x) { return x * sigmoid(x); }
inline double silu_derivative(double x) {
  const double s = sigmoid(x);
  return s * (1.0 + x * (1.0 - s));
}

// A NaN stays NaN.
inline double relu(double x) { return x < 0 ? 0.0 : x; }
inline double relu_derivative(double x) { return x > 0 ? 1.0 : 0.0; }

// By linear's attribute; both nullptr for none.
struct Activation {
  std::string_view name;
  double (*function)(double);
  double (*derivative)(double);
};
inline Activation activation(std::string_view name) {
  static constexpr Activation kAll[] = {{"gelu_tanh", gelu_tanh, gelu_tanh_derivative},
                                        {"gelu_erf", gelu_erf, gelu_erf_derivative},
                                        {"relu", relu, relu_derivative},
                                        {"silu", silu, silu_derivative}};
  for (const Activation& a : kAll)
    if (a.name == name) return a;
  return {};
}

}  // namespace cairn::kernels::reference
