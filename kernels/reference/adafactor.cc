// The op `update` as Adafactor: the rule of optimizers.def, line by line, in double.
#include "runtime/base/optimizers/adafactor.h"

#include <vector>

#include "kernels/reference/common.h"
#include "kernels/reference/parameter.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

template <class T>
class Adafactor : public Kernel {
 public:
  Adafactor(const AdafactorShape& shape, const Signature& s) : shape_(shape), form_(s) {}

  void run(const Call& c) const override {
    const std::optional<double> factor = gradient_factor(c);
    if (!factor) return;
    const AdafactorStep step(c.in[update_op::kHyper].as<double>());
    const T* const grad = c.in[update_op::kGrad].as<T>();
    const Parameter<T> p(c, form_);
    const int64_t n = shape_.all_rows() * shape_.columns;
    std::vector<double> u(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) u[static_cast<size_t>(i)] = load(grad[i]) * *factor;
    for (int64_t b = 0; b < shape_.batch; ++b) shape_.factored ? factored(c, step, b, u) : whole(c, step, u);
    double p_squares = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      p_squares += p.get(i) * p.get(i);
      squares += u[static_cast<size_t>(i)] * u[static_cast<size_t>(i)];
    }
    const double by = step.step(p_squares, squares, n);
    for (int64_t i = 0; i < n; ++i) p.set(i, step.decay * p.get(i) - by * u[static_cast<size_t>(i)]);
  }

 private:
  static T* state(const Call& c, size_t k) { return c.out[update_op::kFirstState + k].as<T>(); }
  static double towards(T& state, double mean, double share) {
    state = store<T>(load(state) + share * (mean - load(state)));
    return load(state);
  }

  // u: the gradient, which becomes what p changes by.
  void factored(const Call& c, const AdafactorStep& step, int64_t b, std::vector<double>& u) const {
    const int64_t rows = shape_.rows, columns = shape_.columns;
    T *const row = state(c, 0) + b * rows, *const column = state(c, 1) + b * columns;
    double* const own = u.data() + b * rows * columns;
    double mean_of_rows = 0;
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < columns; ++j) sum += own[i * columns + j] * own[i * columns + j];
      mean_of_rows += towards(row[i], sum / static_cast<double>(columns), step.share);
    }
    mean_of_rows /= static_cast<double>(rows);
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < rows; ++i) sum += own[i * columns + j] * own[i * columns + j];
      towards(column[j], sum / static_cast<double>(rows), step.share);
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const double v = load(row[i]) * load(column[j]) / std::max(mean_of_rows, step.eps1);
        own[i * columns + j] /= std::max(std::sqrt(v), step.eps1);
      }
  }
  void whole(const Call& c, const AdafactorStep& step, std::vector<double>& u) const {
    T* const v = state(c, 0);
    for (int64_t i = 0; i < shape_.columns; ++i) {
      double& g = u[static_cast<size_t>(i)];
      g /= std::max(std::sqrt(towards(v[i], g * g, step.share)), step.eps1);
    }
  }

  AdafactorShape shape_;
  ParameterForm form_;
};

}  // namespace

std::unique_ptr<Kernel> make_adafactor(const Signature& s) {
  if (const auto shape = adafactor_shape(s, DType::kF64))
    return std::make_unique<Adafactor<double>>(*shape, s);
  if (const auto shape = adafactor_shape(s, DType::kF32))
    return std::make_unique<Adafactor<float>>(*shape, s);
  return nullptr;
}

}  // namespace cairn::kernels::reference
