// The op `update` as Muon: the rule of optimizers.def, line by line, in double.
#include "runtime/base/optimizers/muon.h"

#include <vector>

#include "kernels/reference/common.h"
#include "kernels/reference/parameter.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

// Row-major.
struct Matrix {
  int64_t rows, columns;
  std::vector<double> at;

  Matrix(int64_t m, int64_t n) : rows(m), columns(n), at(static_cast<size_t>(m * n)) {}
  double& operator()(int64_t i, int64_t j) { return at[static_cast<size_t>(i * columns + j)]; }
  double operator()(int64_t i, int64_t j) const { return at[static_cast<size_t>(i * columns + j)]; }
};

Matrix transposed(const Matrix& x) {
  Matrix y(x.columns, x.rows);
  for (int64_t i = 0; i < y.rows; ++i)
    for (int64_t j = 0; j < y.columns; ++j) y(i, j) = x(j, i);
  return y;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t j = 0; j < b.columns; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}

// x has no more rows than columns.
Matrix orthogonalised(Matrix x, int64_t steps, double eps) {
  double squares = 0;
  for (const double v : x.at) squares += v * v;
  for (double& v : x.at) v /= std::max(std::sqrt(squares), eps);
  for (int64_t step = 0; step < steps; ++step) {
    const Matrix gram = product(x, transposed(x)), square = product(gram, gram);
    Matrix polynomial(gram.rows, gram.columns);
    for (size_t i = 0; i < gram.at.size(); ++i)
      polynomial.at[i] = NewtonSchulz::b * gram.at[i] + NewtonSchulz::c * square.at[i];
    const Matrix change = product(polynomial, x);
    for (size_t i = 0; i < x.at.size(); ++i) x.at[i] = NewtonSchulz::a * x.at[i] + change.at[i];
  }
  return x;
}

template <class T>
class Muon : public Kernel {
 public:
  Muon(const MuonShape& shape, const Signature& s) : shape_(shape), form_(s) {}

  void run(const Call& c) const override {
    const std::optional<double> factor = gradient_factor(c);
    if (!factor) return;
    const MuonStep step(c.in[update_op::kHyper].as<double>(), shape_);
    const T* const grad = c.in[update_op::kGrad].as<T>();
    const Parameter<T> p(c, form_);
    T* const m = c.out[update_op::kFirstState].as<T>();
    Matrix x(shape_.rows, shape_.columns);
    for (int64_t i = 0; i < shape_.elements(); ++i) {
      const double g = load(grad[i]) * *factor;
      const double moved = step.momentum * load(m[i]) + (1 - step.momentum) * g;
      m[i] = store<T>(moved);
      x.at[static_cast<size_t>(i)] = step.nesterov ? step.momentum * moved + (1 - step.momentum) * g : moved;
    }
    x = shape_.tall() ? transposed(orthogonalised(transposed(x), shape_.steps, step.eps))
                      : orthogonalised(std::move(x), shape_.steps, step.eps);
    const double by = step.rate * step.scale;
    for (int64_t i = 0; i < shape_.elements(); ++i)
      p.set(i, step.decay * p.get(i) - by * x.at[static_cast<size_t>(i)]);
  }

 private:
  MuonShape shape_;
  ParameterForm form_;
};

}  // namespace

std::unique_ptr<Kernel> make_muon(const Signature& s) {
  if (const auto shape = muon_shape(s, DType::kF64)) return std::make_unique<Muon<double>>(*shape, s);
  if (const auto shape = muon_shape(s, DType::kF32)) return std::make_unique<Muon<float>>(*shape, s);
  return nullptr;
}

}  // namespace cairn::kernels::reference
