// What the kernels of Adafactor share on every backend. A tensor of two dimensions or more is `batch` matrices
// of its last two; each has its own means of rows and of columns. A vector is one row, whose second moment is
// kept in full.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/base/optimizers/update.h"

namespace cairn::kernels {

struct AdafactorShape {
  bool factored = false;
  int64_t batch = 1, rows = 1, columns = 1;

  explicit AdafactorShape(const Shape& p) : factored(p.rank >= 2), columns(p.last()) {
    if (!factored) return;
    rows = p[-2];
    batch = p.elements() / (rows * columns);
  }
  // Of the mean of squares in a row, and in a column.
  int64_t all_rows() const { return batch * rows; }
  int64_t all_columns() const { return batch * columns; }
};

// nullopt: the signature is not of an Adafactor over plain tensors of `dtype`.
inline std::optional<AdafactorShape> adafactor_shape(const Signature& s, DType dtype) {
  if (!takes_update(s, dtype) || s.has_out(update_op::kPacked) || s.attrs->word("optimizer") != "adafactor")
    return std::nullopt;
  const AdafactorShape shape(s.out[update_op::kParameter].shape);
  const auto is = [&](int k, int64_t elements) {
    const TensorDesc& state = s.out[update_op::kFirstState + static_cast<size_t>(k)];
    return state.dtype == dtype && state.packed_bytes == 0 && state.shape.elements() == elements;
  };
  if (s.in[update_op::kGrad].shape.elements() != shape.all_rows() * shape.columns) return std::nullopt;
  const bool fits = shape.factored
                        ? optimizer_states(s) == 2 && is(0, shape.all_rows()) && is(1, shape.all_columns())
                        : optimizer_states(s) == 1 && is(0, shape.columns);
  return fits ? std::optional(shape) : std::nullopt;
}

// Of a step, from the slots of the hyper-parameters (runtime/ops/optimizers.cc).
struct AdafactorStep {
  double rho, share, eps1, eps2, clip, decay;

  explicit AdafactorStep(const double* h)
      : rho(h[0]), share(h[1]), eps1(h[2]), eps2(h[3]), clip(h[4]), decay(1 - h[5]) {}
  // What an element's update is multiplied by, from the sums of squares of all of p and of all updates.
  double step(double p_squares, double squares, int64_t elements) const {
    const auto n = static_cast<double>(elements);
    return rho * std::max(eps2, std::sqrt(p_squares / n)) / std::max(1.0, std::sqrt(squares / n) / clip);
  }
};

}  // namespace cairn::kernels
