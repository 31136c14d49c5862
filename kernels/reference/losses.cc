// cross_entropy, linear_cross_entropy, mse and their gradients, and accuracy. Losses, hits and what they are divided by
// are sums, as float64 scalars.
#include <limits>

#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

// What one row of logits gives: the row's loss, its weight, and factors of its gradient.
struct Row {
  int64_t target = 0;
  double weight = 0;  // 0: ignored
  double scale = 1;   // of the gradient
  double lse = 0;
  double error = 0;
  double smoothing = 0;  // the share of the target that all classes have alike
  int64_t classes = 1;

  // scale * weight * (softmax - one hot); NaN where the target is invalid.
  double gradient(int64_t v, double logit) const {
    if (weight == 0) return 0;
    if (std::isnan(error)) return kNaN;
    const double alike = smoothing / static_cast<double>(classes);
    return scale * weight * (std::exp(logit - lse) - alike - (v == target ? 1.0 - smoothing : 0.0));
  }
};

const Tensor& optional(std::span<const Tensor> list, size_t i) {
  static const Tensor none;
  return i < list.size() ? list[i] : none;
}

struct Targets {
  const Tensor &numbers, &weights, &dloss, &class_weights;
  int64_t classes, ignore_index;
  double smoothing = 0;

  Row row(int64_t r) const {
    Row row;
    row.smoothing = smoothing;
    row.classes = classes;
    if (dloss) row.scale = at(dloss, 0);
    row.target = numbers.as<int32_t>()[r];
    row.weight = row.target == ignore_index ? 0.0 : weights ? at(weights, r) : 1.0;
    if (class_weights && row.weight != 0 && row.target >= 0 && row.target < classes)
      row.weight *= at(class_weights, row.target);
    return row;
  }
};

// logit(v) gives the row's logits.
template <class Logit>
void finish(Row& row, int64_t classes, const Logit& logit) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t v = 0; v < classes; ++v) largest = std::max(largest, logit(v));
  for (int64_t v = 0; v < classes; ++v) sum += std::exp(logit(v) - largest);
  row.lse = largest + std::log(sum);
  const bool valid = row.target >= 0 && row.target < classes;
  row.error = valid ? row.lse - logit(row.target) : kNaN;
  if (!valid || row.smoothing == 0) return;
  double mean = 0;
  for (int64_t v = 0; v < classes; ++v) mean += logit(v) / static_cast<double>(classes);
  row.error += row.smoothing * (logit(row.target) - mean);
}

// A sum and what it is divided by, as outputs `first` and the next one.
void write_sums(const Call& c, size_t first, double sum, double weight) {
  if (c.out.size() > first && c.out[first]) *c.out[first].as<double>() = sum;
  if (c.out.size() > first + 1 && c.out[first + 1]) *c.out[first + 1].as<double>() = weight;
}

// Is the row's target among the `top` largest of its logits, of which the first of equal ones come first?
template <class Logit>
bool hit(const Row& row, int64_t classes, const Logit& logit, int64_t top = 1) {
  if (row.target < 0 || row.target >= classes) return false;
  int64_t ahead = 0;
  for (int64_t v = 0; v < classes; ++v) {
    if (std::isnan(logit(v))) return false;
    if (logit(v) > logit(row.target) || (logit(v) == logit(row.target) && v < row.target)) ++ahead;
  }
  return ahead < top;
}

template <class T>
class CrossEntropy : public Kernel {
 public:
  explicit CrossEntropy(const Signature& s)
      : rows_(s.in[0].shape.rows()),
        n_(s.in[0].shape.last()),
        ignore_(s.attrs->integer("ignore_index", -100)),
        smoothing_(s.attrs->real("smoothing")),
        gradient_(s.op == "cross_entropy_grad") {}
  void run(const Call& c) const override {
    double loss = 0, weight = 0;
    const Tensor none;
    const Targets targets{c.in[1],
                          optional(c.in, 2),
                          gradient_ ? optional(c.in, 3) : none,
                          optional(c.in, gradient_ ? 4 : 3),
                          n_,
                          ignore_,
                          smoothing_};
    T* d = c.out.size() > 2 ? c.out[2].as<T>() : nullptr;
    for (int64_t r = 0; r < rows_; ++r) {
      const T* x = c.in[0].as<T>() + r * n_;
      Row row = targets.row(r);
      finish(row, n_, [&](int64_t v) { return load(x[v]); });
      if (row.weight != 0) loss += row.weight * row.error;
      weight += row.weight;
      if (d != nullptr)
        for (int64_t v = 0; v < n_; ++v) d[r * n_ + v] = store<T>(row.gradient(v, load(x[v])));
    }
    write_sums(c, 0, loss, weight);
  }

 private:
  int64_t rows_, n_, ignore_;
  double smoothing_;
  bool gradient_;
};

template <class T>
class Accuracy : public Kernel {
 public:
  explicit Accuracy(const Signature& s)
      : rows_(s.in[0].shape.rows()),
        n_(s.in[0].shape.last()),
        ignore_(s.attrs->integer("ignore_index", -100)),
        top_(s.attrs->integer("top", 1)) {}
  void run(const Call& c) const override {
    double hits = 0, count = 0;
    const Tensor none;
    for (int64_t r = 0; r < rows_; ++r) {
      const T* x = c.in[0].as<T>() + r * n_;
      const Row row = Targets{c.in[1], optional(c.in, 2), none, none, n_, ignore_}.row(r);
      if (row.weight == 0) continue;
      count += 1;
      hits += hit(
                  row, n_, [&](int64_t v) { return load(x[v]); }, top_)
                  ? 1
                  : 0;
    }
    write_sums(c, 0, hits, count);
  }

 private:
  int64_t rows_, n_, ignore_, top_;
};

// logits = x w^T, one row at a time. dw needs all rows of a column, so logits are made a second time for it.
template <class T, bool kGradient>
class LinearCrossEntropyOf : public Kernel {
 public:
  explicit LinearCrossEntropyOf(const Signature& s)
      : rows_(s.in[0].shape.rows()),
        n_(s.in[1].shape[0]),
        k_(s.in[1].shape[1]),
        ignore_(s.attrs->integer("ignore_index", -100)),
        smoothing_(s.attrs->real("smoothing")),
        logits_(*s.attrs) {}
  int64_t workspace_bytes() const override { return (n_ + k_ + rows_) * 8; }
  void run(const Call& c) const override {
    auto* logits = static_cast<double*>(c.workspace);
    double *sum = logits + n_, *lse = sum + k_;
    const Weight<T> w(c.in[1]);
    T* dx = kGradient && c.out.size() > 2 ? c.out[2].as<T>() : nullptr;
    double loss = 0, weight = 0, hits = 0, count = 0;
    const Targets targets = targets_of(c);
    for (int64_t r = 0; r < rows_; ++r) {
      Row row = targets.row(r);
      for (int64_t v = 0; v < n_; ++v) logits[v] = logit(c, w, r, v);
      finish(row, n_, [&](int64_t v) { return logits[v]; });
      lse[r] = std::isnan(row.error) ? kNaN : row.lse;
      if (row.weight != 0) {
        loss += row.weight * row.error;
        count += 1;
        hits += hit(row, n_, [&](int64_t v) { return logits[v]; }) ? 1 : 0;
      }
      weight += row.weight;
      if (dx == nullptr) continue;
      std::fill_n(sum, k_, 0.0);
      if (row.weight != 0)
        for (int64_t v = 0; v < n_; ++v) {
          const double g = logits_.slope(logits[v]) * row.gradient(v, logits[v]);
          for (int64_t k = 0; k < k_; ++k) sum[k] += g * w[v * k_ + k];
        }
      for (int64_t k = 0; k < k_; ++k) dx[r * k_ + k] = store<T>(sum[k]);
    }
    write_sums(c, 0, loss, weight);
    write_sums(c, kGradient ? 4 : 2, hits, count);
    if (kGradient && c.out.size() > 3 && c.out[3]) weight_gradient(c, sum, lse);
  }

 private:
  Targets targets_of(const Call& c) const {
    return {c.in[2], optional(c.in, 3), optional(c.in, 5), optional(c.in, kGradient ? 6 : 4),
            n_,      ignore_,           smoothing_};
  }
  double logit(const Call& c, const Weight<T>& w, int64_t r, int64_t v) const {
    const T* x = c.in[0].as<T>() + r * k_;
    double dot = 0;
    for (int64_t k = 0; k < k_; ++k) dot += load(x[k]) * w[v * k_ + k];
    return logits_.of(dot);
  }

  void weight_gradient(const Call& c, double* sum, const double* lse) const {
    const Weight<T> w(c.in[1]);
    const Targets targets = targets_of(c);
    for (int64_t v = 0; v < n_; ++v) {
      std::fill_n(sum, k_, 0.0);
      for (int64_t r = 0; r < rows_; ++r) {
        Row row = targets.row(r);
        if (row.weight == 0) continue;
        row.lse = row.error = lse[r];
        const double z = logit(c, w, r, v), g = logits_.slope(z) * row.gradient(v, z);
        for (int64_t k = 0; k < k_; ++k) sum[k] += g * load(c.in[0].as<T>()[r * k_ + k]);
      }
      for (int64_t k = 0; k < k_; ++k) put<Wide<T>>(c, 3, v * k_ + k, sum[k]);
    }
  }

  int64_t rows_, n_, k_, ignore_;
  double smoothing_;
  Logits logits_;
};
template <class T>
using LinearCrossEntropy = LinearCrossEntropyOf<T, false>;
template <class T>
using LinearCrossEntropyGrad = LinearCrossEntropyOf<T, true>;

class Mse : public Kernel {
 public:
  explicit Mse(const Signature& s) : rows_(s.in[0].shape.rows()), n_(s.in[0].shape.last()) {}
  void run(const Call& c) const override {
    double loss = 0, weight = 0;
    const Tensor& weights = optional(c.in, 2);
    const double scale = optional(c.in, 3) ? at(c.in[3], 0) : 1.0;
    for (int64_t r = 0; r < rows_; ++r) {
      const double w = weights ? at(weights, r) : 1.0;
      weight += w * static_cast<double>(n_);
      for (int64_t i = r * n_; i < (r + 1) * n_; ++i) {
        const double difference = at(c.in[0], i) - at(c.in[1], i);
        loss += w * difference * difference;
        if (optional(c.out, 2)) set(c.out[2], i, 2 * scale * w * difference);
        if (optional(c.out, 3)) set(c.out[3], i, -2 * scale * w * difference);
      }
    }
    write_sums(c, 0, loss, weight);
  }

 private:
  int64_t rows_, n_;
};

}  // namespace

std::unique_ptr<Kernel> make_cross_entropy(const Signature& s) { return make<CrossEntropy>(s, "TIPP", "DD"); }
std::unique_ptr<Kernel> make_cross_entropy_grad(const Signature& s) {
  return make<CrossEntropy>(s, "TIPDP", "DDT");
}
std::unique_ptr<Kernel> make_linear_cross_entropy(const Signature& s) {
  return make<LinearCrossEntropy>(s, "TWIPP", "DDDD");
}
std::unique_ptr<Kernel> make_linear_cross_entropy_grad(const Signature& s) {
  return make<LinearCrossEntropyGrad>(s, "TWIPPDP", "DDTPDD");
}
std::unique_ptr<Kernel> make_accuracy(const Signature& s) { return make<Accuracy>(s, "TIP", "DD"); }
std::unique_ptr<Kernel> make_mse(const Signature& s) { return make_any<Mse>(s, "FFF", "DD"); }
std::unique_ptr<Kernel> make_mse_grad(const Signature& s) { return make_any<Mse>(s, "FFFD", "DDFF"); }

}  // namespace cairn::kernels::reference
