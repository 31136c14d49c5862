// fill and adamw (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019).
#include <limits>

#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

class Fill : public Kernel {
 public:
  explicit Fill(const Signature& s) : value_(s.attrs->real("value")) {}
  void run(const Call& c) const override {
    const int64_t n = c.out[0].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i) set(c.out[0], i, value_);
  }

 private:
  double value_;
};

template <class T>
void adamw(const Call& c, double factor) {
  const auto* h = c.in[1].as<double>();
  const double rate = h[0], beta1 = h[1], beta2 = h[2], eps = h[3], decay = h[4], correction1 = h[5],
               correction2 = h[6];
  T *p = c.out[0].as<T>(), *m = c.out[1].as<T>(), *v = c.out[2].as<T>();
  const int64_t n = c.in[0].desc.shape.elements();
  for (int64_t i = 0; i < n; ++i) {
    const double g = load(c.in[0].as<T>()[i]) * factor;
    const double first = beta1 * load(m[i]) + (1.0 - beta1) * g;
    const double second = beta2 * load(v[i]) + (1.0 - beta2) * g * g;
    const double update = first / correction1 / (std::sqrt(second / correction2) + eps) + decay * load(p[i]);
    m[i] = store<T>(first);
    v[i] = store<T>(second);
    p[i] = store<T>(load(p[i]) - rate * update);
  }
}

template <class T>
class AdamW : public Kernel {
 public:
  explicit AdamW(const Signature&) {}
  void run(const Call& c) const override { adamw<T>(c, c.in[1].as<double>()[7]); }
};

template <class T>
class GatedAdamW : public Kernel {
 public:
  explicit GatedAdamW(const Signature&) {}
  void run(const Call& c) const override {
    double& gate = *c.out[3].as<double>();
    if (!std::isfinite(*c.in[2].as<double>())) gate = std::numeric_limits<double>::quiet_NaN();
    if (std::isfinite(gate)) adamw<T>(c, gate);
  }
};

class UpdateGate : public Kernel {
 public:
  explicit UpdateGate(const Signature&) {}
  void run(const Call& c) const override {
    const double loss = *c.in[0].as<double>(), weight = c.in[1] ? *c.in[1].as<double>() : 1.0;
    const bool open = std::isfinite(loss) && std::isfinite(weight);
    *c.out[0].as<double>() =
        open ? 1.0 / (weight != 0 ? weight : 1.0) : std::numeric_limits<double>::quiet_NaN();
  }
};

}  // namespace

std::unique_ptr<Kernel> make_fill(const Signature& s) { return make_any<Fill>(s, "", "F"); }
std::unique_ptr<Kernel> make_adamw(const Signature& s) {
  if (s.in[0].dtype == DType::kBF16) return nullptr;
  return make<AdamW>(s, "TD", "TTTA");  // no pack: those are opaque
}
std::unique_ptr<Kernel> make_adamw_gated(const Signature& s) {
  if (s.in[0].dtype == DType::kBF16) return nullptr;
  return make<GatedAdamW>(s, "TDD", "TTTD");
}
std::unique_ptr<Kernel> make_update_gate(const Signature& s) { return make_any<UpdateGate>(s, "DD", "D"); }

}  // namespace cairn::kernels::reference
