// fill, update (the optimizers are in updates.h) and update_gate.
#include <limits>

#include "kernels/reference/common.h"
#include "kernels/reference/parameter.h"
#include "kernels/reference/rows.h"
#include "kernels/reference/updates.h"
#include "runtime/formats/dynamic8.h"

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

// Every number in double, rounded once where it is stored; parameter.h says what p may be.
template <class Optimizer, class T>
class Update : public Kernel {
 public:
  explicit Update(const Signature& s) : form_(s) {}
  void run(const Call& c) const override {
    const std::optional<double> factor = gradient_factor(c);
    if (!factor) return;
    const Optimizer optimizer(c.in[update_op::kHyper].as<double>());
    const T* const grad = c.in[update_op::kGrad].as<T>();
    const Parameter<T> p(c, form_);
    const int64_t n = c.in[update_op::kGrad].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i) {
      double parameter = p.get(i), state[array_of(Optimizer::kStates)];
      for (size_t k = 0; k < Optimizer::kStates; ++k) state[k] = load(states(c, k)[i]);
      optimizer(load(grad[i]) * *factor, parameter, state);
      for (size_t k = 0; k < Optimizer::kStates; ++k) states(c, k)[i] = store<T>(state[k]);
      p.set(i, parameter);
    }
  }

 private:
  static T* states(const Call& c, size_t k) { return c.out[update_op::kFirstState + k].as<T>(); }
  ParameterForm form_;
};

// States in blocks of 256 of 8 bits.
template <class Optimizer, class T>
class UpdateInBlocks : public Kernel {
 public:
  explicit UpdateInBlocks(const Signature& s) : form_(s) {}
  void run(const Call& c) const override {
    const std::optional<double> factor = gradient_factor(c);
    if (!factor) return;
    const Optimizer optimizer(c.in[update_op::kHyper].as<double>());
    const T* const grad = c.in[update_op::kGrad].as<T>();
    const Parameter<T> p(c, form_);
    const int64_t n = c.in[update_op::kGrad].desc.shape.elements();
    for (int64_t begin = 0; begin < n; begin += kDynamicBlock) {
      const int64_t count = std::min<int64_t>(kDynamicBlock, n - begin);
      double states[Optimizer::kStates][kDynamicBlock];
      for (size_t k = 0; k < Optimizer::kStates; ++k)
        decode_dynamic(map(k), block(c, k, begin), count, states[k]);
      for (int64_t i = 0; i < count; ++i) {
        double parameter = p.get(begin + i), state[Optimizer::kStates];
        for (size_t k = 0; k < Optimizer::kStates; ++k) state[k] = states[k][i];
        optimizer(load(grad[begin + i]) * *factor, parameter, state);
        for (size_t k = 0; k < Optimizer::kStates; ++k) states[k][i] = state[k];
        p.set(begin + i, parameter);
      }
      for (size_t k = 0; k < Optimizer::kStates; ++k)
        encode_dynamic(map(k), states[k], count, block(c, k, begin));
    }
  }

 private:
  static const DynamicMap& map(size_t k) { return dynamic_map_of(Optimizer::kFormats[k]); }
  static DynamicBlock& block(const Call& c, size_t k, int64_t begin) {
    return c.out[update_op::kFirstState + k].as<DynamicBlock>()[begin / kDynamicBlock];
  }
  ParameterForm form_;
};

template <class Optimizer, class T>
using Of = std::conditional_t<InBlocks<Optimizer>, UpdateInBlocks<Optimizer, T>, Update<Optimizer, T>>;

class GradScale : public Kernel {
 public:
  explicit GradScale(const Signature&) {}
  void run(const Call& c) const override {
    const double loss = *c.in[0].as<double>(), weight = c.in[1] ? *c.in[1].as<double>() : 1.0;
    const bool open = std::isfinite(loss) && std::isfinite(weight) && weight != 0;
    *c.out[0].as<double>() = open ? 1.0 / weight : std::numeric_limits<double>::quiet_NaN();
  }
};

}  // namespace

std::unique_ptr<Kernel> make_fill(const Signature& s) { return make_any<Fill>(s, "", "F"); }
std::unique_ptr<Kernel> make_update(const Signature& s) {
  const bool wide = s.in[0].dtype == DType::kF64;
  if (!takes_update(s, wide ? DType::kF64 : DType::kF32) || s.has_out(update_op::kPacked)) return nullptr;
  return with_optimizer(Updates(), s,
                        [&]<class Optimizer>(std::type_identity<Optimizer>) -> std::unique_ptr<Kernel> {
                          if (wide) return std::make_unique<Of<Optimizer, double>>(s);
                          return std::make_unique<Of<Optimizer, float>>(s);
                        });
}
std::unique_ptr<Kernel> make_grad_scale(const Signature& s) { return make_any<GradScale>(s, "DD", "D"); }

}  // namespace cairn::kernels::reference
