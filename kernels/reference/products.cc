// embedding, linear and their gradients.
#include "kernels/reference/activations.h"
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"
#include "runtime/base/matmul.h"

namespace cairn::kernels::reference {
namespace {

// y[r, :] = table[ids[r], :]; zeros for an id outside the table.
class Embedding : public Kernel {
 public:
  explicit Embedding(const Signature& s) : vocab_(s.in[0].shape[0]), width_(s.in[0].shape[1]) {}
  void run(const Call& c) const override {
    const int64_t rows = c.in[1].desc.shape.elements();
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t id = c.in[1].as<int32_t>()[r];
      const bool inside = id >= 0 && id < vocab_;
      for (int64_t i = 0; i < width_; ++i)
        set(c.out[0], r * width_ + i, inside ? at(c.in[0], id * width_ + i) : 0);
    }
  }

 private:
  int64_t vocab_, width_;
};

template <class T>
class EmbeddingGrad : public Kernel {
 public:
  explicit EmbeddingGrad(const Signature& s) : vocab_(s.out[0].shape[0]), width_(s.out[0].shape[1]) {}
  int64_t workspace_bytes() const override { return width_ * 8; }
  void run(const Call& c) const override {
    const int64_t rows = c.in[0].desc.shape.elements();
    const auto* ids = c.in[0].as<int32_t>();
    const T* dy = c.in[1].as<T>();
    auto* sum = static_cast<double*>(c.workspace);
    for (int64_t v = 0; v < vocab_; ++v) {
      std::fill_n(sum, width_, 0.0);
      for (int64_t r = 0; r < rows; ++r)
        if (ids[r] == v)
          for (int64_t i = 0; i < width_; ++i) sum[i] += load(dy[r * width_ + i]);
      for (int64_t i = 0; i < width_; ++i) put<Wide<T>>(c, 0, v * width_ + i, sum[i]);
    }
  }

 private:
  int64_t vocab_, width_;
};

template <class T>
class MatmulOf : public Kernel {
 public:
  explicit MatmulOf(const Signature& s) : z_(s) {}
  void run(const Call& c) const override {
    for (int64_t i = 0; i < z_.count; ++i) {
      const T* a = c.in[0].as<T>() + z_.matrix(0, i) * z_.m * z_.k;
      const T* b = c.in[1].as<T>() + z_.matrix(1, i) * z_.k * z_.n;
      T* y = c.out[0].as<T>() + i * z_.m * z_.n;
      for (int64_t r = 0; r < z_.m; ++r)
        for (int64_t v = 0; v < z_.n; ++v) {
          double sum = 0;
          for (int64_t j = 0; j < z_.k; ++j)
            sum += load(a[z_.transpose_a ? j * z_.m + r : r * z_.k + j]) *
                   load(b[z_.transpose_b ? v * z_.k + j : j * z_.n + v]);
          y[r * z_.n + v] = store<T>(sum);
        }
    }
  }

 private:
  const Matmul z_;
};

// What the attribute names; nullptr for none.
const Activation* activation_of(const Signature& s) {
  const std::string word = s.attrs != nullptr ? s.attrs->word("activation") : "";
  for (const Activation& a : kActivations)
    if (a.name == word) return &a;
  return nullptr;
}

template <class T>
class Linear : public Kernel {
 public:
  explicit Linear(const Signature& s)
      : m_(s.in[0].shape.rows()), n_(s.in[1].shape[0]), k_(s.in[1].shape[1]), activation_(activation_of(s)) {}
  void run(const Call& c) const override {
    const T* x = c.in[0].as<T>();
    const Weight<T> w(c.in[1]);
    const auto* b = c.in.size() > 2 ? c.in[2].as<Wide<T>>() : nullptr;
    T* pre = c.out.size() > 1 ? c.out[1].as<T>() : nullptr;
    for (int64_t m = 0; m < m_; ++m)
      for (int64_t n = 0; n < n_; ++n) {
        double sum = b != nullptr ? load(b[n]) : 0.0;
        for (int64_t k = 0; k < k_; ++k) sum += load(x[m * k_ + k]) * w[n * k_ + k];
        if (pre != nullptr) pre[m * n_ + n] = store<T>(sum);
        c.out[0].as<T>()[m * n_ + n] = store<T>(activation_ ? activation_->function(sum) : sum);
      }
  }

 private:
  int64_t m_, n_, k_;
  const Activation* activation_;
};

template <class T>
class LinearGradInput : public Kernel {
 public:
  explicit LinearGradInput(const Signature& s)
      : m_(s.in[0].shape.rows()), n_(s.in[1].shape[0]), k_(s.in[1].shape[1]), activation_(activation_of(s)) {}
  int64_t workspace_bytes() const override { return k_ * 8; }
  void run(const Call& c) const override {
    const T* dy = c.in[0].as<T>();
    const Weight<T> w(c.in[1]);
    const T* pre = c.in.size() > 2 ? c.in[2].as<T>() : nullptr;
    auto* sum = static_cast<double*>(c.workspace);
    for (int64_t m = 0; m < m_; ++m) {
      std::fill_n(sum, k_, 0.0);
      for (int64_t n = 0; n < n_; ++n) {
        const double g = load(dy[m * n_ + n]);
        for (int64_t k = 0; k < k_; ++k) sum[k] += g * w[n * k_ + k];
      }
      for (int64_t k = 0; k < k_; ++k)
        c.out[0].as<T>()[m * k_ + k] =
            store<T>(pre ? activation_->gradient(sum[k], load(pre[m * k_ + k])) : sum[k]);
    }
  }

 private:
  int64_t m_, n_, k_;
  const Activation* activation_;
};

template <class T>
class LinearGradWeight : public Kernel {
 public:
  explicit LinearGradWeight(const Signature& s)
      : m_(s.in[0].shape.rows()), n_(s.in[1].shape.last()), k_(s.in[0].shape.last()), bias_(s.has_out(1)) {}
  int64_t workspace_bytes() const override { return k_ * 8; }
  void run(const Call& c) const override {
    const T* x = c.in[0].as<T>();
    const T* dy = c.in[1].as<T>();
    auto* sum = static_cast<double*>(c.workspace);
    for (int64_t n = 0; n < n_; ++n) {
      std::fill_n(sum, k_, 0.0);
      double bias = 0;
      for (int64_t m = 0; m < m_; ++m) {
        const double g = load(dy[m * n_ + n]);
        bias += g;
        for (int64_t k = 0; k < k_; ++k) sum[k] += g * load(x[m * k_ + k]);
      }
      for (int64_t k = 0; k < k_; ++k) put<Wide<T>>(c, 0, n * k_ + k, sum[k]);
      if (bias_) put<Wide<T>>(c, 1, n, bias);
    }
  }

 private:
  int64_t m_, n_, k_;
  bool bias_;
};

}  // namespace

std::unique_ptr<Kernel> make_embedding(const Signature& s) { return make_any<Embedding>(s, "BI", "F"); }
std::unique_ptr<Kernel> make_embedding_grad(const Signature& s) { return make<EmbeddingGrad>(s, "IT", "P"); }
std::unique_ptr<Kernel> make_matmul(const Signature& s) { return make<MatmulOf>(s, "TT", "T"); }
std::unique_ptr<Kernel> make_linear(const Signature& s) { return make<Linear>(s, "TWP", "TT"); }
std::unique_ptr<Kernel> make_linear_grad_input(const Signature& s) {
  return make<LinearGradInput>(s, "TWT", "T");
}
std::unique_ptr<Kernel> make_linear_grad_weight(const Signature& s) {
  return make<LinearGradWeight>(s, "TT", "PP");
}

}  // namespace cairn::kernels::reference
