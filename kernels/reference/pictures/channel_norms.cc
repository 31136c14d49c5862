// Norms by channel: batchnorm (Ioffe and Szegedy, 2015), normalize, groupnorm (Wu and He, 2018) and their gradients. x[.., C].
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

template <class T>
const Wide<T>* wide_of(const Call& c, size_t i) {
  return i < c.in.size() ? c.in[i].as<Wide<T>>() : nullptr;
}

// The elements of x that are normalised together: `rows` rows from row `row` on, in channels [first, last).
struct Together {
  int64_t row, rows, channels, first, last;

  template <class Visit>
  void each(const Visit& visit) const {
    for (int64_t r = row; r < row + rows; ++r)
      for (int64_t k = first; k < last; ++k) visit(r * channels + k, k);
  }
  double count() const { return static_cast<double>(rows * (last - first)); }
};

struct Moments {
  double mean = 0, var = 0;
};

template <class T>
Moments moments(const T* x, const Together& part) {
  Moments m;
  part.each([&](int64_t i, int64_t) { m.mean += load(x[i]); });
  m.mean /= part.count();
  part.each([&](int64_t i, int64_t) { m.var += (load(x[i]) - m.mean) * (load(x[i]) - m.mean); });
  m.var /= part.count();
  return m;
}

// y = (x - mean) rstd gamma + beta.
template <class T>
void write(const Call& c, const Together& part, double mean, double rstd, const Wide<T>* gamma,
           const Wide<T>* beta) {
  part.each([&](int64_t i, int64_t k) {
    const double h = (load(c.in[0].as<T>()[i]) - mean) * rstd;
    c.out[0].as<T>()[i] = store<T>(h * (gamma ? load(gamma[k]) : 1.0) + (beta ? load(beta[k]) : 0.0));
  });
}

// h = (x - mean) rstd, g = dy gamma: dx = rstd (g - mean(g) - h mean(g h)), or rstd g where mean and rstd are constants. Adds
// to the sums by channel of dy h and of dy.
template <class T>
void gradient(const Call& c, const Together& part, double mean, double rstd, bool constant, double* dgamma,
              double* dbeta) {
  const T *dy = c.in[0].as<T>(), *x = c.in[1].as<T>();
  const Wide<T>* gamma = wide_of<T>(c, 2);
  const auto g = [&](int64_t i, int64_t k) { return load(dy[i]) * (gamma ? load(gamma[k]) : 1.0); };
  double g_mean = 0, gh_mean = 0;
  part.each([&](int64_t i, int64_t k) {
    const double h = (load(x[i]) - mean) * rstd;
    dgamma[k] += load(dy[i]) * h;
    dbeta[k] += load(dy[i]);
    g_mean += g(i, k) / part.count();
    gh_mean += g(i, k) * h / part.count();
  });
  if (!c.out[0]) return;
  if (constant) g_mean = gh_mean = 0;
  part.each([&](int64_t i, int64_t k) {
    const double h = (load(x[i]) - mean) * rstd;
    c.out[0].as<T>()[i] = store<T>(rstd * (g(i, k) - g_mean - h * gh_mean));
  });
}

template <class T>
void put_sums(const Call& c, int64_t channels, const double* dgamma, const double* dbeta) {
  for (size_t o = 1; o < c.out.size(); ++o)
    if (c.out[o])
      for (int64_t k = 0; k < channels; ++k) put<Wide<T>>(c, o, k, o == 1 ? dgamma[k] : dbeta[k]);
}

// The channel alone, over all rows.
Together channel(const Shape& x, int64_t k) { return {0, x.rows(), x.last(), k, k + 1}; }

template <class T>
class BatchNorm : public Kernel {
 public:
  explicit BatchNorm(const Signature& s) : x_(s.in[0].shape), eps_(s.attrs->real("eps", 1e-5)) {}
  void run(const Call& c) const override {
    for (int64_t k = 0; k < x_.last(); ++k) {
      const Together part = channel(x_, k);
      const Moments m = moments(c.in[0].as<T>(), part);
      write<T>(c, part, m.mean, 1 / std::sqrt(m.var + eps_), wide_of<T>(c, 1), wide_of<T>(c, 2));
      if (c.out.size() > 1 && c.out[1]) c.out[1].as<Wide<T>>()[k] = store<Wide<T>>(m.mean);
      if (c.out.size() > 2 && c.out[2]) c.out[2].as<Wide<T>>()[k] = store<Wide<T>>(m.var);
    }
  }

 private:
  Shape x_;
  double eps_;
};

template <class T>
class BatchNormGrad : public Kernel {
 public:
  explicit BatchNormGrad(const Signature& s)
      : x_(s.in[1].shape), eps_(s.attrs->real("eps", 1e-5)), constant_(s.attrs->integer("fixed") != 0) {}
  int64_t workspace_bytes() const override { return 2 * x_.last() * 8; }
  void run(const Call& c) const override {
    auto* dgamma = static_cast<double*>(c.workspace);
    double* dbeta = dgamma + x_.last();
    std::fill_n(dgamma, 2 * x_.last(), 0.0);
    for (int64_t k = 0; k < x_.last(); ++k) {
      const double mean = load(c.in[3].as<Wide<T>>()[k]), var = load(c.in[4].as<Wide<T>>()[k]);
      gradient<T>(c, channel(x_, k), mean, 1 / std::sqrt(var + eps_), constant_, dgamma, dbeta);
    }
    put_sums<T>(c, x_.last(), dgamma, dbeta);
  }

 private:
  Shape x_;
  double eps_;
  bool constant_;
};

template <class T>
class Normalize : public Kernel {
 public:
  explicit Normalize(const Signature& s) : x_(s.in[0].shape), eps_(s.attrs->real("eps", 1e-5)) {}
  void run(const Call& c) const override {
    for (int64_t k = 0; k < x_.last(); ++k) {
      const double mean = load(c.in[1].as<Wide<T>>()[k]), var = load(c.in[2].as<Wide<T>>()[k]);
      write<T>(c, channel(x_, k), mean, 1 / std::sqrt(var + eps_), wide_of<T>(c, 3), wide_of<T>(c, 4));
    }
  }

 private:
  Shape x_;
  double eps_;
};

// A group of channels of one sample.
class Groups {
 public:
  Groups(const Shape& x, int64_t groups)
      : samples_(x[0]), rows_(x.rows() / x[0]), channels_(x.last()), groups_(groups) {}
  int64_t channels() const { return channels_; }
  // visit(number of the group, its elements)
  template <class Visit>
  void each(const Visit& visit) const {
    const int64_t size = channels_ / groups_;
    for (int64_t n = 0; n < samples_; ++n)
      for (int64_t g = 0; g < groups_; ++g)
        visit(n * groups_ + g, Together{n * rows_, rows_, channels_, g * size, (g + 1) * size});
  }

 private:
  int64_t samples_, rows_, channels_, groups_;
};

template <class T>
class GroupNorm : public Kernel {
 public:
  explicit GroupNorm(const Signature& s)
      : groups_(s.in[0].shape, s.attrs->integer("groups")), eps_(s.attrs->real("eps", 1e-5)) {}
  void run(const Call& c) const override {
    groups_.each([&](int64_t g, const Together& part) {
      const Moments m = moments(c.in[0].as<T>(), part);
      const double rstd = 1 / std::sqrt(m.var + eps_);
      write<T>(c, part, m.mean, rstd, wide_of<T>(c, 1), wide_of<T>(c, 2));
      if (c.out.size() > 1 && c.out[1]) c.out[1].as<Wide<T>>()[g] = store<Wide<T>>(m.mean);
      if (c.out.size() > 2 && c.out[2]) c.out[2].as<Wide<T>>()[g] = store<Wide<T>>(rstd);
    });
  }

 private:
  Groups groups_;
  double eps_;
};

template <class T>
class GroupNormGrad : public Kernel {
 public:
  explicit GroupNormGrad(const Signature& s) : groups_(s.in[1].shape, s.attrs->integer("groups")) {}
  int64_t workspace_bytes() const override { return 2 * groups_.channels() * 8; }
  void run(const Call& c) const override {
    auto* dgamma = static_cast<double*>(c.workspace);
    double* dbeta = dgamma + groups_.channels();
    std::fill_n(dgamma, 2 * groups_.channels(), 0.0);
    groups_.each([&](int64_t g, const Together& part) {
      gradient<T>(c, part, load(c.in[3].as<Wide<T>>()[g]), load(c.in[4].as<Wide<T>>()[g]), false, dgamma,
                  dbeta);
    });
    put_sums<T>(c, groups_.channels(), dgamma, dbeta);
  }

 private:
  Groups groups_;
};

}  // namespace

std::unique_ptr<Kernel> make_batchnorm(const Signature& s) { return make<BatchNorm>(s, "TPP", "TPP"); }
std::unique_ptr<Kernel> make_batchnorm_grad(const Signature& s) {
  return make<BatchNormGrad>(s, "TTPPP", "TPP");
}
std::unique_ptr<Kernel> make_normalize(const Signature& s) { return make<Normalize>(s, "TPPPP", "T"); }
std::unique_ptr<Kernel> make_groupnorm(const Signature& s) { return make<GroupNorm>(s, "TPP", "TPP"); }
std::unique_ptr<Kernel> make_groupnorm_grad(const Signature& s) {
  return make<GroupNormGrad>(s, "TTPPP", "TPP");
}

}  // namespace cairn::kernels::reference
