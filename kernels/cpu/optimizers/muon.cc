// The op `update` as Muon: one pass that makes the momentum and what is to be orthogonalised, products on the
// smaller side (float_product.h), one pass over p. Sums have a fixed order at any number of threads.
#include "runtime/base/optimizers/muon.h"

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizers/muon.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/parameter-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// m = momentum m + (1 - momentum) g; x likewise from the new m, or it. Returns the sum of squares of x.
double follow(const float* grad, float* m, float* x, int64_t count, float gradient, float momentum,
              bool nesterov) {
  constexpr int64_t kSum = 512;  // elements that are summed in float32
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += kSum) {
    V sum = hn::Zero(DF());
    for_each_vector(begin, begin + kSum < count ? begin + kSum : count, [&](auto t, int64_t i) {
      const V g = hn::Mul(get(t, grad + i), set(gradient)), old = get(t, m + i);
      const V moved = hn::MulAdd(hn::Sub(g, old), set(1 - momentum), old);
      const V ahead = nesterov ? hn::MulAdd(hn::Sub(moved, g), set(momentum), g) : moved;
      put(t, moved, m + i);
      put(t, ahead, x + i);
      sum = hn::MulAdd(ahead, ahead, sum);
    });
    total += static_cast<double>(sum_lanes(sum));
  }
  return total;
}

void scale(float* x, int64_t count, float by) {
  for_each_vector(0, count, [&](auto t, int64_t i) { put(t, hn::Mul(get(t, x + i), set(by)), x + i); });
}

// y = a x + b y
void combine(const float* x, float* y, int64_t count, float a, float b) {
  for_each_vector(0, count, [&](auto t, int64_t i) {
    put(t, hn::MulAdd(get(t, x + i), set(a), hn::Mul(get(t, y + i), set(b))), y + i);
  });
}

// Elements [begin, end) of p: p = by x + decay p
void move_parameter(const ParameterPlace& place, const float* x, int64_t begin, int64_t end, float by,
                    float decay) {
  for_each_part(place, begin, end, [&](float* p, int64_t first, int64_t last) {
    combine(x + first, p, last - first, by, decay);
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/gemm/float_product.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

HWY_EXPORT(follow);
HWY_EXPORT(scale);
HWY_EXPORT(combine);
HWY_EXPORT(move_parameter);

namespace {

constexpr int64_t kBlock = 64 << 10;  // elements whose squares are one sum

class Muon : public Kernel {
 public:
  Muon(const MuonShape& shape, const ParameterForm& form, int threads)
      : shape_(shape),
        form_(form),
        gram_(gram_shape(shape), threads),
        square_({.m = shape.side(), .n = shape.side(), .k = shape.side()}, threads),
        next_({.m = shape.rows, .n = shape.columns, .k = shape.side()}, threads) {
    for (int64_t& at : x_at_) at = space_.add(shape.elements() * 4);
    gram_at_ = space_.add(shape.side() * shape.side() * 4);
    square_at_ = space_.add(shape.side() * shape.side() * 4);
    sums_at_ = space_.add(blocks() * 8);
    scratch_at_ =
        space_.add(std::max({gram_.scratch_bytes(), square_.scratch_bytes(), next_.scratch_bytes()}));
  }
  int64_t workspace_bytes() const override { return space_.bytes(); }

  void run(const Call& call) const override {
    const std::optional<double> factor = gradient_factor(call);
    if (!factor) return;
    const MuonStep step(input<const double>(call, update_op::kHyper), shape_);
    float *x = at<float>(call, x_at_[0]), *other = at<float>(call, x_at_[1]);
    start(call, step, static_cast<float>(*factor), x);
    for (int64_t i = 0; i < shape_.steps; ++i) {
      newton_schulz(call, x, other);
      std::swap(x, other);
    }
    const ParameterPlace p(call, form_);
    const auto by = static_cast<float>(-step.rate * step.scale), decay = static_cast<float>(step.decay);
    parallel_for(shape_.elements(), kGrain, [&](int64_t begin, int64_t end, int) {
      CAIRN_DISPATCH(move_parameter)(p, x, begin, end, by, decay);
    });
  }

 private:
  template <class T>
  static T* at(const Call& call, int64_t offset) {
    return Workspace::at<T>(call.workspace, offset);
  }
  int64_t blocks() const { return (shape_.elements() + kBlock - 1) / kBlock; }
  static ProductShape gram_shape(const MuonShape& s) {
    return s.tall() ? ProductShape{.m = s.columns, .n = s.columns, .k = s.rows, .transpose_a = true}
                    : ProductShape{.m = s.rows, .n = s.rows, .k = s.columns, .transpose_b = true};
  }

  void start(const Call& call, const MuonStep& step, float factor, float* x) const {
    const auto* const grad = input<const float>(call, update_op::kGrad);
    auto* const m = output<float>(call, update_op::kFirstState);
    auto* const sums = at<double>(call, sums_at_);
    const int64_t count = shape_.elements();
    parallel_for(blocks(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t i = b * kBlock;
        sums[b] = CAIRN_DISPATCH(follow)(grad + i, m + i, x + i, std::min(kBlock, count - i), factor,
                                         static_cast<float>(step.momentum), step.nesterov);
      }
    });
    double squares = 0;
    for (int64_t b = 0; b < blocks(); ++b) squares += sums[b];
    const auto by = static_cast<float>(1 / std::max(std::sqrt(squares), step.eps));
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end, int) {
      CAIRN_DISPATCH(scale)(x + begin, end - begin, by);
    });
  }

  // next = (a + b gram + c gram^2) x, the polynomial from the left or, where x is tall, from the right.
  void newton_schulz(const Call& call, const float* x, float* next) const {
    auto *const gram = at<float>(call, gram_at_), *const square = at<float>(call, square_at_);
    void* const scratch = at<char>(call, scratch_at_);
    const int64_t side = shape_.side();
    gram_.run(x, x, gram, scratch);
    square_.run(gram, gram, square, scratch);
    parallel_for(side, row_grain(side), [&](int64_t begin, int64_t end, int) {
      CAIRN_DISPATCH(combine)
      (gram + begin * side, square + begin * side, (end - begin) * side, static_cast<float>(NewtonSchulz::b),
       static_cast<float>(NewtonSchulz::c));
      for (int64_t i = begin; i < end; ++i) square[i * side + i] += static_cast<float>(NewtonSchulz::a);
    });
    shape_.tall() ? next_.run(x, square, next, scratch) : next_.run(square, x, next, scratch);
  }

  MuonShape shape_;
  ParameterForm form_;
  FloatProduct gram_, square_, next_;
  Workspace space_;
  int64_t x_at_[2], gram_at_, square_at_, sums_at_, scratch_at_;
};

}  // namespace

std::unique_ptr<Kernel> make_muon(const Signature& s) {
  const auto shape = muon_shape(s, DType::kF32);
  return shape ? std::make_unique<Muon>(*shape, ParameterForm(s), s.threads) : nullptr;
}

}  // namespace cairn::kernels::cpu
#endif
