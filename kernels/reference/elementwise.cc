// Elementwise ops, dropout and softmax.
#include <limits>

#include "kernels/reference/activations.h"
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"
#include "runtime/base/glu.h"

namespace cairn::kernels::reference {
namespace {

// y = f(x)
template <class T>
class Unary : public Kernel {
 public:
  explicit Unary(const Activation& a) : f_(a.function) {}
  void run(const Call& c) const override {
    const int64_t n = c.out[0].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i) c.out[0].as<T>()[i] = store<T>(f_(load(c.in[0].as<T>()[i])));
  }

 private:
  double (*f_)(double);
};

// dx = dy f'(saved)
template <class T>
class UnaryGrad : public Kernel {
 public:
  explicit UnaryGrad(const Activation& a) : f_(a.gradient) {}
  void run(const Call& c) const override {
    const int64_t n = c.out[0].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i)
      c.out[0].as<T>()[i] = store<T>(f_(load(c.in[0].as<T>()[i]), load(c.in[1].as<T>()[i])));
  }

 private:
  double (*f_)(double, double);
};

template <template <class> class K>
std::unique_ptr<Kernel> make_function(const Signature& s, std::string_view op, std::string_view in) {
  const Activation* chosen = nullptr;  // the attribute's, else the op's first
  for (const Activation& a : kActivations)
    if (a.op == op && (chosen == nullptr || s.attrs->word("approximate") == a.choice)) chosen = &a;
  DType t = DType::kF32;
  if (!fits(s, in, "T", &t)) return nullptr;
  if (t == DType::kF32) return std::make_unique<K<float>>(*chosen);
  if (t == DType::kBF16) return std::make_unique<K<bf16>>(*chosen);
  if (t == DType::kF16) return std::make_unique<K<f16>>(*chosen);
  return std::make_unique<K<double>>(*chosen);
}

template <class T>
class Swiglu : public Kernel {
 public:
  explicit Swiglu(const Signature&) {}
  void run(const Call& c) const override {
    const int64_t n = c.out[0].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i)
      c.out[0].as<T>()[i] = store<T>(silu(load(c.in[0].as<T>()[i])) * load(c.in[1].as<T>()[i]));
  }
};

template <class T>
class SwigluGrad : public Kernel {
 public:
  explicit SwigluGrad(const Signature&) {}
  void run(const Call& c) const override {
    const int64_t n = c.in[0].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i) {
      const double dy = load(c.in[0].as<T>()[i]), gate = load(c.in[1].as<T>()[i]),
                   up = load(c.in[2].as<T>()[i]);
      if (c.out[0]) c.out[0].as<T>()[i] = store<T>(silu_grad(dy * up, gate));
      if (c.out.size() > 1 && c.out[1]) c.out[1].as<T>()[i] = store<T>(dy * silu(gate));
    }
  }
};

// y, dgate and dup of a unit by its gate, up and dy.
struct GatedValue {
  double y, dgate, dup;
};
GatedValue gated(double (*f)(double), double (*f_grad)(double, double), double dy, double gate, double up) {
  return {f(gate) * up, f_grad(dy * up, gate), dy * f(gate)};
}
GatedValue swish_clamped(double limit, double dy, double gate, double up) {
  const double g = gate > limit ? limit : gate, u = up > limit ? limit : up < -limit ? -limit : up;
  const double s = sigmoid(kSwishSlope * g);
  const double slope = s + kSwishSlope * g * s * (1 - s);
  return {(u + 1) * g * s, gate > limit ? 0 : dy * (u + 1) * slope, u != up && up == up ? 0 : dy * g * s};
}

// As kGlus: a function of the gate and its derivative, or one of gate and up that is limited.
struct GluFunctions {
  double (*f)(double);
  double (*f_grad)(double, double);
  GatedValue (*limited)(double limit, double dy, double gate, double up);
};
#define GLU(word, function) {function, function##_grad, nullptr},
#define GLU_LIMITED(word) {nullptr, nullptr, word},
constexpr GluFunctions kGluFunctions[] = {CAIRN_GLUS(GLU, GLU_LIMITED)};
#undef GLU
#undef GLU_LIMITED

class GluFunction {
 public:
  explicit GluFunction(const Signature& s)
      : row_(kGluFunctions[glu_of(s.attrs)]), limit_(glu_limit(s.attrs)) {}
  GatedValue operator()(double dy, double gate, double up) const {
    return row_.f != nullptr ? gated(row_.f, row_.f_grad, dy, gate, up) : row_.limited(limit_, dy, gate, up);
  }

 private:
  const GluFunctions row_;
  const double limit_;
};

template <class T>
class Glu : public Kernel {
 public:
  explicit Glu(const Signature& s) : f_(s) {}
  void run(const Call& c) const override {
    const int64_t n = c.out[0].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i)
      c.out[0].as<T>()[i] = store<T>(f_(0, load(c.in[0].as<T>()[i]), load(c.in[1].as<T>()[i])).y);
  }

 private:
  GluFunction f_;
};

template <class T>
class GluGrad : public Kernel {
 public:
  explicit GluGrad(const Signature& s) : f_(s) {}
  void run(const Call& c) const override {
    const int64_t n = c.in[0].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i) {
      const GatedValue v = f_(load(c.in[0].as<T>()[i]), load(c.in[1].as<T>()[i]), load(c.in[2].as<T>()[i]));
      if (c.out[0]) c.out[0].as<T>()[i] = store<T>(v.dgate);
      if (c.out.size() > 1 && c.out[1]) c.out[1].as<T>()[i] = store<T>(v.dup);
    }
  }

 private:
  GluFunction f_;
};

template <class T>
class Scale : public Kernel {
 public:
  explicit Scale(const Signature& s) : factor_(s.attrs->real("factor")) {}
  void run(const Call& c) const override {
    const int64_t n = c.out[0].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i) c.out[0].as<T>()[i] = store<T>(load(c.in[0].as<T>()[i]) * factor_);
  }

 private:
  double factor_;
};

template <class T>
class Dropout : public Kernel {
 public:
  explicit Dropout(const Signature& s)
      : rate_(s.attrs->real("rate")),
        rng_(static_cast<uint32_t>(s.attrs->integer("rng"))),
        first_(s.attrs->integer("first", 0) / 4) {}
  void run(const Call& c) const override {
    RandomKey key = c.key;
    key.op = rng_;
    const int64_t n = c.out[0].desc.shape.elements();
    const auto threshold = static_cast<float>(rate_);
    PhiloxBlock block{};
    for (int64_t i = 0; i < n; ++i) {
      if (i % 4 == 0) block = random_block(key, static_cast<uint64_t>(first_ + i / 4));
      const bool keep = uniform(block[static_cast<size_t>(i % 4)]) >= threshold;
      c.out[0].as<T>()[i] = store<T>(keep ? load(c.in[0].as<T>()[i]) / (1.0 - rate_) : 0.0);
    }
  }

 private:
  double rate_;
  uint32_t rng_;
  int64_t first_;
};

template <class T>
class Softmax : public Kernel {
 public:
  explicit Softmax(const Signature& s) : rows_(s.in[0].shape.rows()), n_(s.in[0].shape.last()) {}
  void run(const Call& c) const override {
    for (int64_t r = 0; r < rows_; ++r) {
      const T* x = c.in[0].as<T>() + r * n_;
      T* y = c.out[0].as<T>() + r * n_;
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = 0; i < n_; ++i) largest = std::max(largest, load(x[i]));
      for (int64_t i = 0; i < n_; ++i) sum += std::exp(load(x[i]) - largest);
      for (int64_t i = 0; i < n_; ++i) y[i] = store<T>(std::exp(load(x[i]) - largest) / sum);
    }
  }

 private:
  int64_t rows_, n_;
};

template <class T>
class SoftmaxGrad : public Kernel {
 public:
  explicit SoftmaxGrad(const Signature& s) : rows_(s.in[0].shape.rows()), n_(s.in[0].shape.last()) {}
  void run(const Call& c) const override {
    for (int64_t r = 0; r < rows_; ++r) {
      const T *dy = c.in[0].as<T>() + r * n_, *y = c.in[1].as<T>() + r * n_;
      double sum = 0;
      for (int64_t i = 0; i < n_; ++i) sum += load(dy[i]) * load(y[i]);
      for (int64_t i = 0; i < n_; ++i)
        c.out[0].as<T>()[r * n_ + i] = store<T>(load(y[i]) * (load(dy[i]) - sum));
    }
  }

 private:
  int64_t rows_, n_;
};

}  // namespace

#define UNARY(op, ...)                                                                                \
  std::unique_ptr<Kernel> make_##op(const Signature& s) { return make_function<Unary>(s, #op, "T"); } \
  std::unique_ptr<Kernel> make_##op##_grad(const Signature& s) {                                      \
    return make_function<UnaryGrad>(s, #op, "TT");                                                    \
  }
#include "runtime/base/elementwise.def"

std::unique_ptr<Kernel> make_swiglu(const Signature& s) { return make<Swiglu>(s, "TT", "T"); }
std::unique_ptr<Kernel> make_swiglu_grad(const Signature& s) { return make<SwigluGrad>(s, "TTT", "TT"); }
std::unique_ptr<Kernel> make_glu(const Signature& s) { return make<Glu>(s, "TT", "T"); }
std::unique_ptr<Kernel> make_glu_grad(const Signature& s) { return make<GluGrad>(s, "TTT", "TT"); }
std::unique_ptr<Kernel> make_scale(const Signature& s) { return make<Scale>(s, "T", "T"); }
std::unique_ptr<Kernel> make_dropout(const Signature& s) { return make<Dropout>(s, "T", "T"); }
std::unique_ptr<Kernel> make_softmax(const Signature& s) { return make<Softmax>(s, "T", "T"); }
std::unique_ptr<Kernel> make_softmax_grad(const Signature& s) { return make<SoftmaxGrad>(s, "TT", "T"); }

}  // namespace cairn::kernels::reference
