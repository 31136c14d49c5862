// layernorm (Ba et al., 2016), rmsnorm (Zhang and Sennrich, 2019), l2_normalize and their gradients, over the last axis.
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

double mean_of(const auto* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += load(x[i]);
  return sum / static_cast<double>(n);
}

template <class T>
class LayerNorm : public Kernel {
 public:
  explicit LayerNorm(const Signature& s)
      : rows_(s.in[0].shape.rows()), n_(s.in[0].shape.last()), eps_(s.attrs->real("eps", 1e-5)) {}
  void run(const Call& c) const override {
    using P = Wide<T>;
    const P* gamma = c.in.size() > 1 ? c.in[1].as<P>() : nullptr;
    const P* beta = c.in.size() > 2 ? c.in[2].as<P>() : nullptr;
    for (int64_t r = 0; r < rows_; ++r) {
      const T* x = c.in[0].as<T>() + r * n_;
      const double mean = mean_of(x, n_);
      double square = 0;
      for (int64_t i = 0; i < n_; ++i) square += (load(x[i]) - mean) * (load(x[i]) - mean);
      const double rstd = 1.0 / std::sqrt(square / static_cast<double>(n_) + eps_);
      for (int64_t i = 0; i < n_; ++i) {
        const double h = (load(x[i]) - mean) * rstd;
        c.out[0].as<T>()[r * n_ + i] =
            store<T>(h * (gamma ? load(gamma[i]) : 1.0) + (beta ? load(beta[i]) : 0.0));
      }
      if (c.out.size() > 1 && c.out[1]) c.out[1].as<P>()[r] = store<P>(mean);
      if (c.out.size() > 2 && c.out[2]) c.out[2].as<P>()[r] = store<P>(rstd);
    }
  }

 private:
  int64_t rows_, n_;
  double eps_;
};

// h = (x - mean) * rstd, g = dy * gamma: dx = rstd * (g - mean(g) - h * mean(g h)) + da.
template <class T>
class LayerNormGrad : public Kernel {
 public:
  explicit LayerNormGrad(const Signature& s) : rows_(s.in[1].shape.rows()), n_(s.in[1].shape.last()) {}
  int64_t workspace_bytes() const override { return 2 * n_ * 8; }
  void run(const Call& c) const override {
    using P = Wide<T>;
    const P* gamma = c.in[2].as<P>();
    const T* da = c.in.size() > 5 ? c.in[5].as<T>() : nullptr;
    auto* dgamma = static_cast<double*>(c.workspace);
    double* dbeta = dgamma + n_;
    std::fill_n(dgamma, 2 * n_, 0.0);
    const auto scale = [&](int64_t i) { return gamma ? load(gamma[i]) : 1.0; };
    for (int64_t r = 0; r < rows_; ++r) {
      const T* dy = c.in[0].as<T>() + r * n_;
      const T* x = c.in[1].as<T>() + r * n_;
      const double mean = load(c.in[3].as<P>()[r]), rstd = load(c.in[4].as<P>()[r]);
      double g_mean = 0, gh_mean = 0;
      for (int64_t i = 0; i < n_; ++i) {
        const double h = (load(x[i]) - mean) * rstd, g = load(dy[i]) * scale(i);
        g_mean += g;
        gh_mean += g * h;
        dgamma[i] += load(dy[i]) * h;
        dbeta[i] += load(dy[i]);
      }
      g_mean /= static_cast<double>(n_);
      gh_mean /= static_cast<double>(n_);
      if (!c.out[0]) continue;
      for (int64_t i = 0; i < n_; ++i) {
        const double h = (load(x[i]) - mean) * rstd, more = da ? load(da[r * n_ + i]) : 0.0;
        c.out[0].as<T>()[r * n_ + i] =
            store<T>(rstd * (load(dy[i]) * scale(i) - g_mean - h * gh_mean) + more);
      }
    }
    for (size_t o = 1; o < c.out.size(); ++o)
      if (c.out[o])
        for (int64_t i = 0; i < n_; ++i) put<P>(c, o, i, o == 1 ? dgamma[i] : dbeta[i]);
  }

 private:
  int64_t rows_, n_;
};

template <class T>
class RmsNorm : public Kernel {
 public:
  explicit RmsNorm(const Signature& s)
      : rows_(s.in[0].shape.rows()),
        n_(s.in[0].shape.last()),
        eps_(s.attrs->real("eps", 1e-5)),
        offset_(s.attrs->real("offset")) {}
  void run(const Call& c) const override {
    using P = Wide<T>;
    const P* gamma = c.in.size() > 1 ? c.in[1].as<P>() : nullptr;
    for (int64_t r = 0; r < rows_; ++r) {
      const T* x = c.in[0].as<T>() + r * n_;
      double square = 0;
      for (int64_t i = 0; i < n_; ++i) square += load(x[i]) * load(x[i]);
      const double rstd = 1.0 / std::sqrt(square / static_cast<double>(n_) + eps_);
      for (int64_t i = 0; i < n_; ++i)
        c.out[0].as<T>()[r * n_ + i] = store<T>(load(x[i]) * rstd * (gamma ? load(gamma[i]) + offset_ : 1.0));
      if (c.out.size() > 1 && c.out[1]) c.out[1].as<P>()[r] = store<P>(rstd);
    }
  }

 private:
  int64_t rows_, n_;
  double eps_, offset_;
};

// h = x * rstd, g = dy * gamma: dx = rstd * (g - h * mean(g h)) + da.
template <class T>
class RmsNormGrad : public Kernel {
 public:
  explicit RmsNormGrad(const Signature& s)
      : rows_(s.in[1].shape.rows()), n_(s.in[1].shape.last()), offset_(s.attrs->real("offset")) {}
  int64_t workspace_bytes() const override { return n_ * 8; }
  void run(const Call& c) const override {
    using P = Wide<T>;
    const P* gamma = c.in[2].as<P>();
    const T* da = c.in.size() > 4 ? c.in[4].as<T>() : nullptr;
    auto* dgamma = static_cast<double*>(c.workspace);
    std::fill_n(dgamma, n_, 0.0);
    const auto scale = [&](int64_t i) { return gamma ? load(gamma[i]) + offset_ : 1.0; };
    for (int64_t r = 0; r < rows_; ++r) {
      const T* dy = c.in[0].as<T>() + r * n_;
      const T* x = c.in[1].as<T>() + r * n_;
      const double rstd = load(c.in[3].as<P>()[r]);
      double gh_mean = 0;
      for (int64_t i = 0; i < n_; ++i) {
        const double h = load(x[i]) * rstd;
        gh_mean += load(dy[i]) * scale(i) * h;
        dgamma[i] += load(dy[i]) * h;
      }
      gh_mean /= static_cast<double>(n_);
      if (!c.out[0]) continue;
      for (int64_t i = 0; i < n_; ++i) {
        const double more = da ? load(da[r * n_ + i]) : 0.0;
        c.out[0].as<T>()[r * n_ + i] =
            store<T>(rstd * (load(dy[i]) * scale(i) - load(x[i]) * rstd * gh_mean) + more);
      }
    }
    if (c.out.size() > 1 && c.out[1])
      for (int64_t i = 0; i < n_; ++i) put<P>(c, 1, i, dgamma[i]);
  }

 private:
  int64_t rows_, n_;
  double offset_;
};

template <class T>
class L2Normalize : public Kernel {
 public:
  explicit L2Normalize(const Signature& s)
      : rows_(s.in[0].shape.rows()), n_(s.in[0].shape.last()), eps_(s.attrs->real("eps", 1e-12)) {}
  void run(const Call& c) const override {
    for (int64_t r = 0; r < rows_; ++r) {
      const T* x = c.in[0].as<T>() + r * n_;
      double square = 0;
      for (int64_t i = 0; i < n_; ++i) square += load(x[i]) * load(x[i]);
      const double norm = std::sqrt(square);
      for (int64_t i = 0; i < n_; ++i)
        c.out[0].as<T>()[r * n_ + i] = store<T>(load(x[i]) / std::max(norm, eps_));
      if (c.out.size() > 1 && c.out[1]) c.out[1].as<Wide<T>>()[r] = store<Wide<T>>(norm);
    }
  }

 private:
  int64_t rows_, n_;
  double eps_;
};

// dx = (dy - y sum(y dy)) / norm; below eps y = x / eps.
template <class T>
class L2NormalizeGrad : public Kernel {
 public:
  explicit L2NormalizeGrad(const Signature& s)
      : rows_(s.in[0].shape.rows()), n_(s.in[0].shape.last()), eps_(s.attrs->real("eps", 1e-12)) {}
  void run(const Call& c) const override {
    for (int64_t r = 0; r < rows_; ++r) {
      const T *dy = c.in[0].as<T>() + r * n_, *y = c.in[1].as<T>() + r * n_;
      const double norm = load(c.in[2].as<Wide<T>>()[r]);
      double along = 0;
      for (int64_t i = 0; i < n_ && !(norm < eps_); ++i) along += load(y[i]) * load(dy[i]);
      for (int64_t i = 0; i < n_; ++i)
        c.out[0].as<T>()[r * n_ + i] = store<T>((load(dy[i]) - load(y[i]) * along) / std::max(norm, eps_));
    }
  }

 private:
  int64_t rows_, n_;
  double eps_;
};

}  // namespace

std::unique_ptr<Kernel> make_layernorm(const Signature& s) { return make<LayerNorm>(s, "TPP", "TPP"); }
std::unique_ptr<Kernel> make_layernorm_grad(const Signature& s) {
  return make<LayerNormGrad>(s, "TTPPPT", "TPP");
}
std::unique_ptr<Kernel> make_rmsnorm(const Signature& s) { return make<RmsNorm>(s, "TP", "TP"); }
std::unique_ptr<Kernel> make_rmsnorm_grad(const Signature& s) { return make<RmsNormGrad>(s, "TTPPT", "TP"); }
std::unique_ptr<Kernel> make_l2_normalize(const Signature& s) { return make<L2Normalize>(s, "T", "TP"); }
std::unique_ptr<Kernel> make_l2_normalize_grad(const Signature& s) {
  return make<L2NormalizeGrad>(s, "TTP", "T");
}

}  // namespace cairn::kernels::reference
