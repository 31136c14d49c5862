// What the kernels of Muon share on every backend: the polynomial of Jordan et al. (2024), whose slope at 0 is
// so steep that five steps bring all singular values near 1.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/base/optimizers/update.h"

namespace cairn::kernels {

// One Newton-Schulz step: x = (a + b x x^T + c (x x^T)^2) x.
struct NewtonSchulz {
  static constexpr double a = 3.4445, b = -4.775, c = 2.0315;
};

// The products are made on the smaller side: x x^T, or x^T x with x on the left where there are more rows.
struct MuonShape {
  int64_t rows = 0, columns = 0, steps = 0;

  bool tall() const { return rows > columns; }
  int64_t side() const { return std::min(rows, columns); }
  int64_t elements() const { return rows * columns; }
  // What the rate is multiplied by.
  double scale(bool match_rms_adamw) const {
    const auto m = static_cast<double>(rows), n = static_cast<double>(columns);
    return match_rms_adamw ? 0.2 * std::sqrt(std::max(m, n)) : std::sqrt(std::max(1.0, m / n));
  }
};

// nullopt: the signature is not of a Muon over plain tensors of `dtype`.
inline std::optional<MuonShape> muon_shape(const Signature& s, DType dtype) {
  if (!takes_update(s, dtype) || s.has_out(update_op::kPacked) || s.attrs->word("optimizer") != "muon")
    return std::nullopt;
  const TensorDesc &grad = s.in[update_op::kGrad], &momentum = s.out[update_op::kFirstState];
  const int64_t steps = s.attrs->integer("ns_steps");
  if (grad.shape.rank != 2 || s.out[update_op::kParameter].shape != grad.shape || optimizer_states(s) != 1 ||
      momentum != grad || steps < 1)
    return std::nullopt;
  return MuonShape{grad.shape[0], grad.shape[1], steps};
}

// The factors of a step, from the slots of the hyper-parameters (runtime/ops/optimizers.cc).
struct MuonStep {
  double rate, momentum, eps, decay, scale;
  bool nesterov;

  MuonStep(const double* h, const MuonShape& shape)
      : rate(h[0]),
        momentum(h[1]),
        eps(h[3]),
        decay(1 - h[0] * h[4]),
        scale(shape.scale(h[5] != 0)),
        nesterov(h[2] != 0) {}
};

}  // namespace cairn::kernels
